"""Ctrl-C and SIGTERM, sent to a real command."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import IO

import pytest
from tests.server.running import save_tiny_models

COMMAND = [sys.executable, "-c", "import sys; from bertkit.cli.main import main; sys.exit(main())"]
SECONDS_TO_WAIT = 60


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_training_saves_and_prints_the_command_to_resume(
    data: Path, tmp_path: Path, number: signal.Signals, exit_code: int
) -> None:
    sizes = ["--size", "1/12/2", "--seq-length", "37", "--batch-size", "7", "--steps", "1000000"]
    words = ["pretrain", str(data), *sizes, "-o", str(tmp_path / "run"), "--progress", "plain"]
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        watchdog = threading.Timer(SECONDS_TO_WAIT, process.kill)
        watchdog.start()
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("pretraining: "):
                process.send_signal(number)
                break
        lines += process.stderr.readlines()
        process.wait()
        watchdog.cancel()
    assert process.returncode == exit_code, lines
    assert lines[-1].startswith("stopped after step ")
    assert f"bertkit pretrain --resume {tmp_path / 'run'}" in lines[-1]
    assert not any("Traceback" in line for line in lines)
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert checkpoint.name.startswith("step-")


@pytest.mark.parametrize("output", ["-", "answers.jsonl"])
def test_a_prediction_that_waits_for_stdin_ends_at_once(tmp_path: Path, output: str) -> None:
    run = save_tiny_models(tmp_path / "models") / "reviews"
    target = output if output == "-" else str(tmp_path / output)
    words = ["predict", str(run), "-", "-o", target, "--quiet"]
    with subprocess.Popen([*COMMAND, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(SECONDS_TO_WAIT, process.kill)
        watchdog.start()
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("the river ran\n")
        process.stdin.flush()
        wait_until_read(process.stdin)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.wait()
        watchdog.cancel()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert [each.name for each in tmp_path.iterdir()] == ["models"], "nothing is left that could not be continued"


def wait_until_read(pipe: IO[str]) -> None:
    """Until the process at the other end has taken all that was written, so that it waits for more."""
    for _ in range(10 * SECONDS_TO_WAIT):
        if not any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
            return
        time.sleep(0.1)
    raise AssertionError("it never reads")
