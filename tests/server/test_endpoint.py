"""What every route does: ids of requests, limits, deadlines, errors without a trace."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.server.running import get, post, running, wait_until

from bertkit.server.call import Call
from bertkit.server.endpoint import ENCODER, encode
from bertkit.server.limits import Limits
from bertkit.server.models import EmbedOperation, ServedModel
from bertkit.server.run import Server
from bertkit.server.service import Service


def test_a_request_keeps_its_id_if_it_is_harmless(server: Server) -> None:
    assert get(server, "/health", **{"x-request-id": "abc-7"}).headers["x-request-id"] == "abc-7"
    for bad in ("a b", "x" * 65, "<script>"):
        assert get(server, "/health", **{"x-request-id": bad}).headers["x-request-id"] != bad


def test_a_bug_shows_nothing_of_itself(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyError("/secret/path")

    with running(loaded[:1]) as server:
        monkeypatch.setattr(EmbedOperation, "run", fail)
        reply = post(server, "/embed", {"inputs": "a"})
        assert (reply.status_code, reply.json()) == (500, {"error": "internal error", "error_type": "Internal"})
        assert "secret" not in str(reply.headers)
        monkeypatch.undo()
        assert post(server, "/embed", {"inputs": "a"}).status_code == 200
    assert "/secret/path" in capsys.readouterr().err  # the log has the traceback


def test_requests_over_the_limit_are_told_to_come_back(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    may_run = threading.Event()
    original = EmbedOperation.run

    def wait(*arguments: object) -> object:
        assert may_run.wait(20)
        return original(*arguments)  # type: ignore[arg-type]

    with running(loaded[:1], Limits(requests=2)) as server:
        monkeypatch.setattr(EmbedOperation, "run", wait)
        threads = [threading.Thread(target=post, args=(server, "/embed", {"inputs": "a"})) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.service.state.running == 2)
        refused = post(server, "/embed", {"inputs": ["a", "b"]})
        assert refused.status_code == 429
        assert {"retry-after", "retry-after-ms"} <= set(refused.headers)
        assert get(server, "/ready").status_code == 200
        may_run.set()
        for thread in threads:
            thread.join(20)
        assert post(server, "/embed", {"inputs": "a"}).status_code == 200


def test_a_request_has_a_deadline(loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    may_run = threading.Event()
    with running(loaded[:1], Limits(seconds=0.2)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(EmbedOperation, "run", lambda *arguments: may_run.wait(20) and [])
            reply = post(server, "/embed", {"inputs": "a"})
            assert (reply.status_code, reply.json()["error_type"]) == (504, "Timeout")
            may_run.set()
        assert server.service.state.running == 0


def test_large_answers_that_nobody_reads_are_limited(loaded: list[ServedModel]) -> None:
    body = {"inputs": ["a"] * 4096}
    content = json.dumps(body).encode()
    with running(loaded[:1], Limits(held_bytes=1_500_000)) as server:
        server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        state = server.service.state
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.settimeout(20)
            address = urlsplit(server.address)
            reader.connect((address.hostname, address.port))
            head = b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            reader.sendall(head % len(content) + content)
            assert reader.recv(1000).startswith(b"HTTP/1.1 200")
            assert 750_000 < state.unsent < 1_500_000
            refused = post(server, "/embed", body)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert post(server, "/embed", {"inputs": "a"}).status_code == 200
        wait_until(lambda: not state.unsent)
        whole = post(server, "/embed", body)
        assert (whole.status_code, len(whole.json())) == (200, 4096)
        assert state.unsent == 0


def test_a_query_with_too_many_fields_is_refused(server: Server) -> None:
    """Its model would be ignored."""
    query = "&".join(f"a{number}=1" for number in range(20)) + "&model=words"
    assert get(server, f"/info?{query}").status_code == 400
    assert post(server, f"/stream?{query}", "a", content_type="application/x-ndjson").status_code == 400


def test_the_answer_to_many_tokens_is_encoded_in_a_thread(loaded: list[ServedModel]) -> None:
    """4,096 vectors of 768 numbers take 0.6 s, in which the event loop would answer nobody."""
    threads: list[int] = []

    class Noted:
        def __str__(self) -> str:
            threads.append(threading.get_ident())
            return "noted"

    call = Call(Service(loaded[:1]), {}, {}, "id")
    for call.usage.tokens in (13, 4096):
        assert asyncio.run(encode(call, {"answer": Noted()})) == b'{"answer":"noted"}'
    assert [each == threading.get_ident() for each in threads] == [True, False]


def test_a_matrix_is_encoded_row_by_row() -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (
        ENCODER.encode({"a": matrix, "b": [matrix]})
        == b'{"a":[[0.0,1.0,2.0],[3.0,4.0,5.0]],"b":[[[0.0,1.0,2.0],[3.0,4.0,5.0]]]}'
    )
    assert ENCODER.enc_hook is not None
    rows = ENCODER.enc_hook(matrix)
    assert [type(row) for row in rows] == [np.ndarray, np.ndarray], "a thread can be interrupted between two rows"
