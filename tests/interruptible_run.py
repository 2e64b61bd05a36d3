"""A pre-training small enough to be killed hundreds of times: its command in a forked child, and its results."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bertkit
from bertkit.checkpoint import training_state as store
from bertkit.cli import app, main
from bertkit.data.prepare import prepare
from bertkit.runs import read_metrics
from bertkit.text.wordpiece import train

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]
LOADED = (bertkit.pretrain, app)
"""Imported before the fork, so that no child has to import them."""
_PATIENCE = 120


def _nothing() -> None: ...


@dataclass(frozen=True)
class Child:
    """A command in a child process, forked so that PyTorch is already imported."""

    pid: int
    stderr: Path

    def wait(self) -> int:
        """Its exit code; minus the number of the signal that killed it."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"the command hangs: {self.read_stderr()}")

    def read_stderr(self) -> str:
        return self.stderr.read_text()


@dataclass(frozen=True)
class TinyRun:
    """Prepared data, and the settings of the pre-training that the fault tests interrupt."""

    data: Path
    home: Path
    size: str
    steps: int

    def command(self, run: Path) -> list[str]:
        """The command that starts the run."""
        sizes = ["--size", self.size, "--steps", str(self.steps), "--seq-length", "13", "--batch-size", "7"]
        settings = ["seed=5", "save_every=4", "evaluate_every=7", "log_every=1", "precision=float32"]
        return ["pretrain", str(self.data), *sizes, "-o", str(run), "--set", *settings]

    def next_command(self, run: Path) -> list[str]:
        """The command that resumes the run, or starts it if the fault came before its first file."""
        return ["pretrain", "--resume", str(run)] if (run / "run.json").exists() else self.command(run)

    def start(self, command: list[str], before: Callable[[], object] = _nothing) -> Child:
        """Run a command in a child that calls ``before`` first."""
        stderr = self.home / f"stderr-{time.monotonic_ns()}"
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child has its handlers
        pid = os.fork()
        if pid == 0:
            _run_in_child(command, stderr, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return Child(pid, stderr)

    def run(self, command: list[str], before: Callable[[], object] = _nothing) -> tuple[int, str]:
        """The exit code of a command and the text of its stderr."""
        child = self.start(command, before)
        return child.wait(), child.read_stderr()

    def finish(self, run: Path) -> str:
        """Resume the run until it is done; the text of stderr."""
        code, stderr = self.run(self.next_command(run))
        assert code == 0, stderr
        return stderr


def _run_in_child(command: list[str], stderr: Path, before: Callable[[], object]) -> None:
    code = 99
    try:
        os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv, sys.stdout, sys.stderr = ["bertkit", *command], os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        main.Signals()
        before()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = main.main()
    except SystemExit as stop:
        code = int(str(stop.code))
    except KeyboardInterrupt:
        code = 130
    except OSError:
        if os.fstat(2).st_size >= resource.getrlimit(resource.RLIMIT_FSIZE)[0] >= 0:
            code = 1  # stderr is a file here; where it is full, Python itself ends with this code
    finally:
        os._exit(code)


def prepare_text(home: Path) -> Path:
    """Prepare short texts; the folder of their shards."""
    texts = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(99)]
    (home / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = train(texts, vocab_size=99)
    prepare([home / "texts.jsonl"], tokenizer=tokenizer, output=home / "data", heldout=0.1)
    return home / "data"


def outcome(run: Path) -> dict[str, Any]:
    """Everything that a run has produced, bit for bit: last checkpoint, model, record, and log without speeds."""
    newest, faults = store.latest(run / "checkpoints")
    assert newest is not None
    assert faults == []
    records = [dict(record) for record in read_metrics(run / "metrics.jsonl")]
    for record in records:
        for speed in ("tokens_per_second", "flops_per_second", "mfu"):
            record.pop(speed, None)
    about = json.loads((run / "model" / "bertkit.json").read_text())
    ended = json.loads((run / "run.json").read_text())
    files = [*sorted(newest.glob("*.safetensors")), run / "model" / "model.safetensors"]
    return {
        "kept": sorted(path.name for path in (run / "checkpoints").iterdir()),
        "log": records,
        "heldout": (about["heldout"], ended["heldout"], ended["ended"]),
        **{f"{path.parent.name}/{path.name}": path.read_bytes() for path in files},
    }
