"""Clients that are slow or silent."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import socket
import time
from collections.abc import Iterator

import pytest
from tests.server.running import get, running, wait_until

from bertkit.server import connections
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.run import Server


@pytest.fixture
def strict(loaded: list[ServedModel]) -> Iterator[Server]:
    with running(loaded[:1], Limits(header_seconds=0.3, body_seconds=0.3, write_seconds=0.3)) as server:
        yield server


def connect(server: Server) -> socket.socket:
    host, port = server.address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(10)
    return connection


def test_a_silent_connection_is_closed(strict: Server) -> None:
    with connect(strict) as connection:
        begin = time.monotonic()
        assert connection.recv(10) == b""
        assert 0.2 < time.monotonic() - begin < 5


def test_a_header_that_comes_byte_by_byte_has_an_absolute_deadline(strict: Server) -> None:
    with connect(strict) as connection:
        begin = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - begin < 5:
                connection.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - begin < 5
    assert get(strict, "/health").status_code == 200


def test_a_body_that_comes_byte_by_byte_is_ended_with_408(strict: Server) -> None:
    with connect(strict) as connection:
        connection.sendall(
            b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
        )
        assert b" 408 " in connection.recv(1000).split(b"\r\n")[0]


def test_a_connection_may_be_used_again_after_the_deadline_of_its_first_header(strict: Server) -> None:
    with connect(strict) as connection:
        for _ in range(3):
            connection.sendall(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):  # head and body may come one by one
                answer += connection.recv(1000)
            assert b" 200 " in answer.split(b"\r\n")[0]
            time.sleep(0.2)


def test_a_client_that_does_not_read_is_cut_off(strict: Server) -> None:
    strict.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # else 4 MB of answers find a place
    with connect(strict) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"
        begin = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - begin < 20:
                connection.sendall(request * 50)
                time.sleep(0.01)
        assert time.monotonic() - begin < 20
    assert get(strict, "/health").status_code == 200


def test_a_client_that_reads_slowly_gets_all(strict: Server) -> None:
    strict.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    content = json.dumps({"inputs": ["a"] * 1500}).encode()
    head = b"POST /embed HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", int(strict.address.rpartition(":")[2])))
        connection.sendall(head + content)
        begin, answer = time.monotonic(), b""
        while part := connection.recv(4096):
            answer += part
            time.sleep(0.01)
    assert time.monotonic() - begin > 0.9  # several times the limit
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])) == 1500


def test_a_header_without_end_is_refused_by_its_length(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /live HTTP/1.1\r\nhost: x\r\nlong: ")
        with contextlib.suppress(OSError):  # the answer comes before all of it is sent
            for _ in range(100):
                connection.sendall(b"a" * 10_000)
        assert b" 400 " in connection.recv(1000).split(b"\r\n")[0]
    assert get(server, "/health").status_code == 200


def test_a_long_header_that_arrives_at_once_is_refused(server: Server) -> None:
    with connect(server) as client:
        client.sendall(b"GET /live HTTP/1.1\r\nhost: x\r\n" + b"x-a: " + b"a" * 66_000 + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")
    assert get(server, "/health").status_code == 200


@pytest.mark.parametrize("sent", [b"GET /a?text=caf\xc3\xa9 HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n"])
def test_what_is_no_request_has_an_answer_like_others(
    server: Server, sent: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect(server) as client:
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error_type"] == "Malformed"
    (request_id,) = re.findall(rb"x-request-id: ([0-9a-f]{32})", head)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["request_id"] == request_id.decode()


def test_connections_above_the_limit_are_closed_at_once(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 3)
    with running(loaded[:1]) as server, contextlib.ExitStack() as opened:
        clients = [opened.enter_context(connect(server)) for _ in range(7)]
        wait_until(lambda: sum(map(is_closed, clients)) == 4)
        for client in clients:
            client.close()
        wait_until(lambda: get(server, "/health").status_code == 200)


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed a connection on which nothing was sent."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_the_limit_of_open_files_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [1024, 4096]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, found: limits.__setitem__(slice(None), found))
    assert connections.most_connections() == 960
    connections.raise_file_limit()
    assert limits == [4096, 4096]
    assert connections.most_connections() == 4032


def test_an_answer_comes_in_one_piece(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
        assert connection.recv(10_000).endswith(b"}")


def test_requests_that_do_not_wait_for_answers_get_them_in_order(server: Server) -> None:
    body = b'{"inputs": "the river"}'
    post = b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    with connect(server) as connection:
        connection.sendall(post % (len(body), body) + b"GET /nosuch HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = b""
        while b" 404 " not in answer:
            answer += connection.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_would_rather_speak_http2_gets_its_answer(server: Server) -> None:
    body = b'{"inputs": "the river"}'
    head = (
        b"POST /embed HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n"
        b"http2-settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\ncontent-type: application/json\r\n"
    )
    with connect(server) as connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200 ")


def test_the_server_is_no_proxy(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"CONNECT other:443 HTTP/1.1\r\nhost: other:443\r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 400 ")
    assert get(server, "/health").status_code == 200
