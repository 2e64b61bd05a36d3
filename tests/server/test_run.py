"""The process: its socket, its signals, its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from tests.server.running import get, post, running, wait_until

from bertkit.errors import BertkitError
from bertkit.options.serving import ServeOptions
from bertkit.server import run
from bertkit.server.models import EmbedOperation, ServedModel
from bertkit.server.run import bind, is_loopback


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_process_with_success(tiny_models: Path, number: signal.Signals) -> None:
    program = f"""
import signal, sys
from bertkit.cli.main import main
signal.signal({int(number)}, signal.SIG_DFL)  # the tests may run where it is ignored, such as under nohup
sys.exit(main())
"""
    command = [sys.executable, "-c", program, "serve", str(tiny_models / "reviews"), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        address = None
        for line in process.stderr:
            if match := re.search(r"http://127\.0\.0\.1:\d+", line):
                address = match[0]
                break
        assert address is not None
        reply = httpx2.post(f"{address}/predict", json={"inputs": "the river"})
        assert reply.status_code == 200
        process.send_signal(number)
        assert process.wait(30) == 0


def test_a_signal_while_models_are_loaded_is_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [128 + number for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)]

    def load(*arguments: object) -> None:
        raise SystemExit(codes.pop(0))

    monkeypatch.setattr(run, "load_models", load)
    run.serve(ServeOptions(["model"], port=0))
    run.serve(ServeOptions(["model"], port=0))
    with pytest.raises(SystemExit):
        run.serve(ServeOptions(["model"], port=0))


def test_running_requests_finish_after_a_stop(loaded: list[ServedModel]) -> None:
    with running(loaded[:1]) as server:
        assert get(server, "/ready").status_code == 200
        server.stop()
    with pytest.raises(httpx2.TransportError):
        get(server, "/ready")


def test_requests_that_do_not_finish_in_time_are_told_so(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    may_run, replies = threading.Event(), []
    with running(loaded[:1], grace=0.3) as server, monkeypatch.context() as patch:
        patch.setattr(EmbedOperation, "run", lambda *arguments: may_run.wait(20) and [])
        asking = threading.Thread(target=lambda: replies.append(post(server, "/embed", {"inputs": "a"})))
        asking.start()
        wait_until(lambda: server.service.state.running > 0)
        begin = time.monotonic()
        server.stop()
        asking.join(10)
        seconds = time.monotonic() - begin
        may_run.set()
    (reply,) = replies
    assert (reply.status_code, reply.json()["error"]) == (503, "the server is stopping")
    assert seconds < 1.3


def test_a_port_that_is_taken_is_one_line() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(BertkitError, match="Choose another --port or --host"):
            bind("127.0.0.1", taken.getsockname()[1])


def test_a_port_that_is_taken_is_found_before_models_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "load_models", lambda *arguments: pytest.fail("they may take minutes"))
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(BertkitError, match="Choose another --port or --host"):
            run.serve(ServeOptions(["model"], port=taken.getsockname()[1]))


def test_answers_are_sent_without_delay() -> None:
    """asyncio sets TCP_NODELAY where the socket names its protocol; answers took 40 ms more without it."""
    with bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_loopback_is_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")] == [
        *(True, True, True),
        *(False, False),
    ]


@pytest.mark.parametrize("origin", ["https://example.org/", "foo", "example.org"])
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(BertkitError, match=f"--cors-origin {origin} is no origin"):
        run.serve(ServeOptions(["model"], cors_origin=[origin]))
