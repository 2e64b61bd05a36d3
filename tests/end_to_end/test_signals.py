"""Ctrl-C and SIGTERM, sent to a real command."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

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
