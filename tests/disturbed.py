"""A pre-training so small that it can be killed hundreds of times: the command in a forked child, and what it made."""

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

from bertkit import api
from bertkit.checkpoint import training_state as store
from bertkit.cli import app, main
from bertkit.data.prepare import prepare
from bertkit.runs import read_metrics
from bertkit.text.wordpiece import train

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]
LOADED = (api, app)
"""Imported before the fork, so that no child has to."""
_PATIENCE = 120


def _nothing() -> None: ...


@dataclass(frozen=True)
class Child:
    """A command that runs in a process of its own, forked so that PyTorch is loaded already."""

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
        raise AssertionError(f"it hangs: {self.said()}")

    def said(self) -> str:
        return self.stderr.read_text()


@dataclass(frozen=True)
class Bench:
    """Prepared text, and the pre-training that the tests of faults disturb: so small, or as small as that."""

    data: Path
    home: Path
    size: str
    steps: int

    def words(self, run: Path) -> list[str]:
        """The command that begins it."""
        sizes = ["--size", self.size, "--steps", str(self.steps), "--seq-length", "13", "--batch-size", "7"]
        settings = ["seed=5", "save_every=4", "evaluate_every=7", "log_every=1", "precision=float32"]
        return ["pretrain", str(self.data), *sizes, "-o", str(run), "--set", *settings]

    def next_words(self, run: Path) -> list[str]:
        """The command that goes on with it, or begins it where a fault came too early for anything else."""
        return ["pretrain", "--resume", str(run)] if (run / "run.json").exists() else self.words(run)

    def start(self, words: list[str], before: Callable[[], object] = _nothing) -> Child:
        """Run a command line in a child that does ``before`` first."""
        stderr = self.home / f"stderr-{time.monotonic_ns()}"
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child has its handlers
        pid = os.fork()
        if pid == 0:
            _be_child(words, stderr, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return Child(pid, stderr)

    def run(self, words: list[str], before: Callable[[], object] = _nothing) -> tuple[int, str]:
        """The exit code of a command line and what it said."""
        child = self.start(words, before)
        return child.wait(), child.said()

    def finish(self, run: Path) -> str:
        """Go on until the run is done; what was said."""
        code, said = self.run(self.next_words(run))
        assert code == 0, said
        return said


def _be_child(words: list[str], stderr: Path, before: Callable[[], object]) -> None:
    code = 99
    try:
        os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv, sys.stdout, sys.stderr = ["bertkit", *words], os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        signal.signal(signal.SIGTERM, main._terminate)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        before()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = main.main()
    except SystemExit as stop:
        code = int(str(stop.code))
    except KeyboardInterrupt:
        code = 130
    except OSError:
        if os.fstat(2).st_size >= resource.getrlimit(resource.RLIMIT_FSIZE)[0] >= 0:
            code = 1  # stderr is a file here, and full: so Python ends where nothing can be said any more
    finally:
        os._exit(code)


def prepare_text(home: Path) -> Path:
    """The folder of its tokens."""
    texts = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(99)]
    (home / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = train(texts, vocab_size=99)
    prepare([home / "texts.jsonl"], tokenizer=tokenizer, output=home / "data", heldout=0.1)
    return home / "data"


def outcome(run: Path) -> dict[str, Any]:
    """All that a run came to, bit for bit: the last checkpoint, the model, the record, the log without its speeds."""
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
