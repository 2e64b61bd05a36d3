"""NDJSON in and out."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.server.running import post, running, wait_until

from bertkit.server import streams
from bertkit.server.keys import ApiKeys
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.run import Server

HEADERS = {"content-type": "application/x-ndjson"}


def send(server: Server, content: bytes | Iterator[bytes], query: str = "") -> list[dict[str, object]]:
    reply = httpx2.post(f"{server.address}/stream{query}", content=content, headers=HEADERS, timeout=60)
    assert reply.status_code == 200
    return [json.loads(line) for line in reply.text.splitlines()]


def test_each_line_is_answered_in_order(server: Server) -> None:
    texts = [f"the river {'ran ' * (number % 7)}" for number in range(150)]  # more than are read ahead
    answers = send(server, b"\n".join(json.dumps(text).encode() for text in texts))
    assert [each["index"] for each in answers] == list(range(150))
    for place in (0, 77, 149):
        expected = post(server, "/models/reviews", {"inputs": texts[place], "parameters": {}}).json()
        found = answers[place]["result"]
        assert isinstance(found, list)
        assert [each["label"] for each in found[0]] == [each["label"] for each in expected[0]]
        assert [each["score"] for each in found[0]] == pytest.approx([each["score"] for each in expected[0]], abs=1e-5)


def test_a_line_that_fails_does_not_end_the_stream(server: Server) -> None:
    lines = [
        b'"the river"',
        b"nonsense",
        b"",
        b'{"input": 1}',
        b'""',
        b'{"inputs": "the mill", "parameters": {"top_k": 1}}',
    ]
    answers = send(server, b"\r\n".join(lines))
    assert [each.get("error_type") for each in answers] == [None, "Malformed", "Validation", "Empty", None]
    last = answers[-1]["result"]
    assert isinstance(last, list)
    assert len(last[0]) == 1


def test_a_line_says_what_was_cut_off(server: Server) -> None:
    line = {"inputs": "the river ran " * 99, "parameters": {"truncate": True}}
    long, short = send(server, json.dumps(line).encode() + b'\n"the river"')
    whole = post(server, "/models/reviews", {"inputs": line["inputs"], "parameters": {"truncate": True}})
    assert long["truncated_tokens"] == int(whole.headers["x-truncated-tokens"]) > 0
    assert "truncated_tokens" not in short


def test_answers_come_while_lines_are_sent(server: Server) -> None:
    """The body has no length: it is sent in chunks while a generator makes it."""
    answers = send(server, (b'{"inputs": "the [MASK] ran"}\n' for _ in range(5)), "?model=words")
    assert len(answers) == 5
    assert all("result" in each for each in answers)


def test_a_line_has_the_limit_of_a_body(loaded: list[ServedModel]) -> None:
    with running(loaded[:1], Limits(body_bytes=99)) as server:
        first, second = send(server, b'"a river"\n"' + b"a" * 500)
        assert "result" in first
        assert "longer than 99 bytes" in str(second["error"])


def test_a_line_that_is_too_long_does_not_end_the_stream(loaded: list[ServedModel]) -> None:
    body = [b'"a river"\n"' + b"a" * 500, b"a" * 500, b"a" * 500, b'"\n"the river"\n']
    with running(loaded[:1], Limits(body_bytes=99)) as server:
        answers = send(server, iter(body))
    assert ["result" in each for each in answers] == [True, False, True]
    assert [each["index"] for each in answers] == [0, 1, 2]


def test_other_types_and_unknown_models_are_refused_before_the_stream(server: Server) -> None:
    assert post(server, "/stream", "a").status_code == 415
    assert httpx2.post(f"{server.address}/stream?model=none", content=b'"a"', headers=HEADERS).status_code == 404


def test_a_refused_stream_is_counted(server: Server) -> None:
    assert post(server, "/stream", "a").status_code == 415
    lines = httpx2.get(f"{server.address}/metrics").text.splitlines()
    assert any('status="415"' in line for line in lines)


def open_stream(server: Server) -> socket.socket:
    """A connection whose body has begun: ordinary clients send it whole before they read."""
    address = urlsplit(server.address)
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=20)
    connection.sendall(
        b"POST /stream HTTP/1.1\r\nHost: bertkit\r\nContent-Type: application/x-ndjson\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    return connection


def send_line(connection: socket.socket, line: bytes) -> None:
    connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))


def receive_until(connection: socket.socket, sought: bytes) -> bytes:
    received = b""
    while sought not in received:
        part = connection.recv(65536)
        assert part, f"the connection ended before {sought!r}"
        received += part
    return received


def test_a_client_may_wait_for_an_answer_before_its_next_line(server: Server) -> None:
    with open_stream(server) as connection:
        for number in range(3):
            send_line(connection, b'"the river"\n')
            receive_until(connection, b'{"index":%d,"result"' % number)
        connection.sendall(b"0\r\n\r\n")


def test_a_stream_without_lines_for_too_long_ends_with_an_error(loaded: list[ServedModel]) -> None:
    with running(loaded[:1], Limits(body_seconds=0.5)) as server, open_stream(server) as connection:
        send_line(connection, b'"the river"\n')
        received = receive_until(connection, b"\r\n0\r\n\r\n")
    assert b'{"index":0,"result"' in received
    assert b'{"index":1,"error":"no line arrived within 0.5 seconds' in received


def test_a_stream_that_is_open_at_the_end_is_told_so(loaded: list[ServedModel]) -> None:
    may_end, answers = threading.Event(), []

    def lines() -> Iterator[bytes]:
        yield b'"the river"\n'
        may_end.wait(20)

    with running(loaded[:1], grace=0.3) as server:
        asking = threading.Thread(target=lambda: answers.extend(send(server, lines())))
        asking.start()
        wait_until(lambda: server.service.state.running > 0)
        server.stop()
        wait_until(lambda: not server.service.state.accepted)
        may_end.set()
        asking.join(10)
    assert [each["index"] for each in answers] == [0, 1]
    assert answers[-1]["error"] == "the server is stopping"


def test_a_stream_counts_as_a_running_request(loaded: list[ServedModel]) -> None:
    with running(loaded[:1], Limits(requests=1)) as server:
        with open_stream(server) as connection:
            send_line(connection, b'"the river"\n')
            receive_until(connection, b'{"index":0,"result"')
            assert httpx2.post(f"{server.address}/stream", content=b'"a"', headers=HEADERS).status_code == 429
        wait_until(lambda: server.service.state.running == 0)
        assert "result" in send(server, b'"a river"')[0]


def test_a_stream_that_is_refused_holds_nothing(loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(loaded[:1], keys=ApiKeys(("correct-horse",))) as server:
        headers = {**HEADERS, "authorization": "Basic ü"}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        for status in (401, 500):
            reply = httpx2.post(f"{server.address}/stream", content=b'"a"', headers=encoded)
            assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json")
            wait_until(lambda: server.service.state.running == 0)
            monkeypatch.setattr(server.service.keys, "allow", lambda header: 1 / 0)


def test_an_old_client_is_told_that_it_cannot_read_a_stream(server: Server) -> None:
    address = urlsplit(server.address)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as connection:
        head = b"POST /stream HTTP/1.0\r\nContent-Type: application/x-ndjson\r\nContent-Length: 3\r\n\r\n"
        connection.sendall(head + b'"a"')
        answer = receive_until(connection, b"needs HTTP/1.1").lower()
    assert answer.startswith(b"http/1.1 505 ")
    assert b"chunked" not in answer


def test_few_bytes_are_read_ahead(loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    async def never(call: object, number: int, line: object) -> bytes:
        begun.append(number)
        await asyncio.sleep(60)
        return b""

    monkeypatch.setattr(streams, "_answer_line", never)
    with running(loaded[:1]) as server, open_stream(server) as connection:
        for _ in range(9):
            send_line(connection, b'"' + b"a" * 10_000 + b'"\n')
        wait_until(lambda: len(begun) >= 4)
        time.sleep(0.3)
        assert begun == [0, 1, 2, 3]


def test_few_large_answers_wait_for_the_client(loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    sent = threading.Event()

    async def large(call: object, number: int, line: object) -> bytes:
        begun.append(number)
        if number > 3:  # the first four answers have come, and each had 400 KB
            await asyncio.to_thread(sent.wait, 20)
        return b'"' + b"a" * 400_000 + b'"\n'

    monkeypatch.setattr(streams, "_answer_line", large)
    with running(loaded[:1]) as server, open_stream(server) as connection:
        for _ in range(20):
            send_line(connection, b'"a"\n')
        received = 0
        while received < 4 * 400_000:
            received += len(connection.recv(1 << 20))
        wait_until(lambda: len(begun) >= 6)
        time.sleep(0.3)
        assert begun == [0, 1, 2, 3, 4, 5], "two answers of 400 KB are less than a megabyte, three are more"
        sent.set()
