"""The process: its socket, its signals, its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests.server.running import get, running

from bertkit.errors import BertkitError
from bertkit.server.models import ServedModel
from bertkit.server.run import is_loopback, listen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_success(tiny_models: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "bertkit", "serve", str(tiny_models / "reviews"), "--port", "0"]
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


def test_running_requests_finish_after_a_stop(loaded: list[ServedModel]) -> None:
    with running(loaded[:1]) as server:
        assert get(server, "/ready").status_code == 200
        server.stop()
    with pytest.raises(httpx2.TransportError):
        get(server, "/ready")


def test_a_port_that_is_taken_is_one_line() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(BertkitError, match="Choose another --port or --host"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_answers_are_sent_without_delay() -> None:
    """asyncio sets TCP_NODELAY where the socket names its protocol; answers took 40 ms more without it."""
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_loopback_is_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")] == [
        *(True, True, True),
        *(False, False),
    ]
