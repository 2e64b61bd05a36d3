"""Requests that are wrong, too large, too slow or too many: the documented answer, and the next good request works."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.server.running import post, running, save_tiny_models, served

from bertkit.inference.pipeline import load
from bertkit.server.limits import Limits
from bertkit.server.run import Server

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="memory and descriptors are read in /proc"
)

GOOD = {"inputs": "the river ran"}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with running(served(folder, "reviews", "words"), Limits(inputs=99, header_seconds=2, body_seconds=2)) as server:
        yield server


def read_memory(process: int) -> int:
    """The bytes of memory that a process has now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


def count_descriptors(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def connect(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(20)
    return connection


def exchange(address: str, data: bytes) -> bytes:
    """What the server answers to these bytes, until it closes the connection or the answer is complete."""
    with connect(address) as connection:
        answer = b""
        with contextlib.suppress(OSError):  # the server need not read all of a body that it refuses
            connection.sendall(data)
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                answer += part
                head, found, body = answer.partition(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                if found and length and len(body) >= int(length[1]):
                    break
        return answer


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ")[1]) if answer else 0


def request(body: bytes, *headers: str, path: str = "/predict", length: int | None = -1) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", *headers]
    if length is not None:
        lines.append(f"content-length: {len(body) if length == -1 else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


JSON_TYPE = "content-type: application/json"


def wrong_json(body: bytes) -> bytes:
    return request(body, JSON_TYPE)


def chunked(size: int) -> bytes:
    chunk = b"%x\r\n%b\r\n" % (65536, b"a" * 65536)
    return request(b"", JSON_TYPE, "transfer-encoding: chunked", length=None) + chunk * (size // 65536)


BAD = {
    "a length of 1 GB": (request(b"{", JSON_TYPE, length=1_000_000_000), {413}),
    "3 MB without a length": (chunked(3 * MEGABYTE), {413}),
    "100,000 brackets": (wrong_json(b"[" * 100_000), {400, 422}),
    "100,000 brackets in a field": (wrong_json(b'{"inputs":' + b"[" * 100_000), {400, 422}),
    "100,000 objects": (wrong_json(b'{"inputs":' * 100_000), {400, 422}),
    "NaN": (wrong_json(b'{"inputs": NaN}'), {400}),
    "a number of 10,000 digits": (wrong_json(b'{"inputs": ' + b"9" * 10_000 + b"}"), {400, 422}),
    "half a character": (wrong_json(b'{"inputs": "\\ud800"}'), {400}),
    "not UTF-8": (wrong_json(b'{"inputs": "\xff"}'), {400}),
    "an unknown field": (wrong_json(b'{"inputs": "a", "imputs": 1}'), {422}),
    "a wrong type": (wrong_json(b'{"inputs": {"a": 1}}'), {400, 422}),
    "a list at the top": (wrong_json(b"[1]"), {422}),
    "an empty body": (wrong_json(b""), {400}),
    "a bomb": (request(gzip.compress(b" " * 50 * MEGABYTE), JSON_TYPE, "content-encoding: gzip"), {415}),
    "plain text": (request(b'{"inputs": "a"}', "content-type: text/plain"), {415}),
    "no type": (request(b'{"inputs": "a"}'), {415}),
    "a form": (request(b"inputs=a", "content-type: application/x-www-form-urlencoded"), {415}),
    "no length": (request(b"", JSON_TYPE, length=None), {400}),
    "a negative length": (request(b"", JSON_TYPE, length=-5), {400}),
    "two lengths": (request(b"{}", JSON_TYPE, "content-length: 7"), {400}),
    "no HTTP": (b"\x16\x03\x01\x02\x00 hello\r\n\r\n", {400}),
    "a header of 1 MB": (b"GET / HTTP/1.1\r\nx: " + b"a" * MEGABYTE, {0, 400, 431}),
    "a path of controls": (b"GET /%00%0d%0aevent%1b[31m HTTP/1.1\r\nhost: x\r\n\r\n", {404}),
    "too many inputs": (wrong_json(json.dumps({"inputs": [["a"]] * 100}).encode()), {422}),
    "an empty list": (wrong_json(b'{"inputs": []}'), {400}),
    "an empty text": (wrong_json(b'{"inputs": ""}'), {400}),
    "1 MB of text": (wrong_json(json.dumps({"inputs": "a" * MEGABYTE}).encode()), {422}),
    "too many tokens": (wrong_json(json.dumps({"inputs": "river " * 500}).encode()), {422}),
    "ids that are negative": (request(b'{"inputs": [-1], "model": "words"}', JSON_TYPE, path="/embed"), {422}),
    "ids outside the vocabulary": (
        request(b'{"inputs": [[100000]], "model": "words"}', JSON_TYPE, path="/embed"),
        {422},
    ),
    "an unknown model": (wrong_json(b'{"inputs": "a", "model": "../../etc/passwd"}'), {404}),
    "a model with controls": (wrong_json(b'{"inputs": "a", "model": "x\\r\\nset-cookie: a\\u001b[31m"}'), {404}),
    "a task that is a template": (request(b"{}", JSON_TYPE, path="/pipeline/$(x)%7B%7B7*7%7D%7D"), {404}),
    "an unclosed chunk": (request(b"zz\r\n", JSON_TYPE, "transfer-encoding: chunked", length=None), {400}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_answered_and_the_next_good_one_works(server: Server, name: str) -> None:
    data, expected = BAD[name]
    answer = exchange(server.address, data)
    assert status_of(answer) in expected
    for secret in (b"Traceback", b"site-packages", b"/tmp", str(Path.home()).encode(), b"\x1b"):
        assert secret not in answer
    assert b"\nset-cookie" not in answer.lower()
    assert post(server, "/predict", GOOD).status_code == 200


def test_the_last_of_two_equal_keys_counts(server: Server) -> None:
    twice = exchange(server.address, wrong_json(b'{"inputs": "the mill", "inputs": "the river ran"}'))
    assert json.loads(twice.partition(b"\r\n\r\n")[2]) == post(server, "/predict", GOOD).json()


def test_a_body_shorter_than_its_length_is_given_up(server: Server) -> None:
    with connect(server.address) as connection:
        connection.sendall(request(b'{"inputs"', JSON_TYPE, length=500))
        connection.shutdown(socket.SHUT_WR)  # half-closed: nothing more can come
        begin = time.monotonic()
        assert connection.recv(1000) == b""
        assert time.monotonic() - begin < 10
    assert post(server, "/predict", GOOD).status_code == 200
    assert server.service.bodies.held == 0


def test_refused_bodies_leave_no_memory(server: Server) -> None:
    body = json.dumps({"inputs": "a" * (2 * MEGABYTE - 100)}).encode()
    exchange(server.address, wrong_json(body))
    before = read_memory(os.getpid())
    for _ in range(30):
        assert status_of(exchange(server.address, wrong_json(body))) == 422
    assert read_memory(os.getpid()) - before < 10 * MEGABYTE


def test_silent_and_slow_clients_do_not_hold_up_others(server: Server) -> None:
    descriptors = count_descriptors(os.getpid())
    silent = [connect(server.address) for _ in range(200)]
    slow = [connect(server.address) for _ in range(20)]
    for connection in slow:
        connection.sendall(request(b'{"inp', JSON_TYPE, length=500))
    times = []
    for _ in range(30):
        begin = time.monotonic()
        assert post(server, "/predict", GOOD).status_code == 200
        times.append(time.monotonic() - begin)
    assert max(times) < 2
    for connection in slow:
        assert b" 408 " in connection.recv(1000).split(b"\r\n")[0]
    for connection in silent:
        assert connection.recv(10) == b""  # closed by the server
    for connection in (*slow, *silent):
        connection.close()
    wait_for(lambda: count_descriptors(os.getpid()) <= descriptors + 2)


def wait_for(condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_work_of_clients_that_left_is_dropped(server: Server) -> None:
    body = json.dumps({"inputs": [["the river ran past the old stone mill"]] * 99}).encode()
    for _ in range(40):
        with connect(server.address) as connection:
            connection.sendall(wrong_json(body))
    service = server.service
    wait_for(lambda: service.state.running == 0 and service.batcher.queued_tokens == 0)
    assert service.bodies.held == 0
    assert post(server, "/predict", GOOD).status_code == 200


@pytest.mark.parametrize("inputs", ["the river", [["the river"]] * 9], ids=["single", "batch"])
def test_more_than_it_can_do_is_refused_and_it_recovers(folder: Path, inputs: object) -> None:
    with running(served(folder, "reviews"), Limits(requests=4, queued_tokens=50)) as server:
        replies: list[httpx2.Response] = []

        def ask() -> None:
            replies.append(post(server, "/predict", {"inputs": inputs}))

        for _ in range(3):
            threads = [threading.Thread(target=ask) for _ in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        assert len(replies) == 120
        assert {reply.status_code for reply in replies} <= {200, 429}
        assert any(reply.status_code == 200 for reply in replies)
        for reply in replies:
            assert reply.status_code == 200 or {"retry-after", "retry-after-ms"} <= set(reply.headers)
        assert post(server, "/predict", GOOD).status_code == 200


@contextmanager
def process_of(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-m", "bertkit", "serve", str(folder), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            address = next(match[0] for line in lines if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
            threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()  # keeps the pipe empty
            yield process, address
        finally:
            process.kill()


def test_a_signal_under_load_loses_no_accepted_request(folder: Path) -> None:
    answered: list[httpx2.Response] = []
    refused: list[httpx2.Response] = []
    wrong: list[httpx2.Response] = []

    def ask(address: str) -> None:
        with httpx2.Client(verify=False) as client:
            while True:
                try:
                    reply = client.post(f"{address}/predict", json=GOOD, timeout=60)
                except httpx2.ConnectError:
                    return  # the server no longer listens
                except (httpx2.RemoteProtocolError, httpx2.ReadError):
                    continue  # an idle connection was closed, or reset, before the request was read
                (answered if reply.status_code == 200 else refused if reply.status_code == 503 else wrong).append(reply)

    with process_of(folder / "reviews") as (process, address):
        threads = [threading.Thread(target=ask, args=(address,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(answered) > 20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        for thread in threads:
            thread.join(30)
    assert wrong == []
    assert all("retry-after" in reply.headers for reply in refused)


def test_a_model_that_cannot_be_loaded_is_one_line(folder: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in (folder / "reviews").iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    command = [sys.executable, "-m", "bertkit", "serve", str(damaged), "--port", "0", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert ended.returncode != 0
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1


def test_no_name_is_a_path_and_no_name_forges_a_log_line(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        "../../etc/x",
        "..\\x",
        "con",
        "a" * 300,
        "\u0430dmin",
        "$(x)",
        "{{7*7}}",
        'x\n{"event":"forged"}',
        "\x1b[31m",
    ]
    monkeypatch.chdir(tmp_path)
    before = sorted(folder.rglob("*"))
    with running(served(folder, "reviews")) as server:
        for name in names:
            assert post(server, "/predict", {"inputs": "a", "model": name}).status_code == 404
            assert httpx2.get(f"{server.address}/v1/models/{httpx2.QueryParams({'a': name})}").status_code == 404
    assert sorted(folder.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert "forged" not in [json.loads(line)["event"] for line in lines]
    assert all(line.isprintable() for line in lines)


def soak(folder: Path, seconds: float) -> None:
    """Bad requests with a good one after every ninth: right to the end, without growth."""
    expected = dict(load(folder).classify("the river ran").scores)
    draw = random.Random(7)
    bad = [data for data, _ in BAD.values()]
    with process_of(folder) as (server, address):
        for data in bad:  # what is loaded once is loaded now
            exchange(address, data)
        check_good(address, expected)
        memory, descriptors = read_memory(server.pid), count_descriptors(server.pid)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(9):
                exchange(address, draw.choice(bad))
            check_good(address, expected)
        assert server.poll() is None
        wait_for(lambda: count_descriptors(server.pid) <= descriptors + 1)
        assert read_memory(server.pid) < 1.1 * memory


def check_good(address: str, expected: dict[str, float]) -> None:
    reply = httpx2.post(f"{address}/predict", json=GOOD, timeout=60, verify=False)
    assert reply.status_code == 200
    assert {each["label"]: each["score"] for each in reply.json()} == pytest.approx(expected, abs=1e-6)


def test_a_short_soak(folder: Path) -> None:
    soak(folder / "reviews", 5)


@pytest.mark.faults
def test_five_minutes_of_bad_requests(folder: Path) -> None:
    soak(folder / "reviews", 300)
