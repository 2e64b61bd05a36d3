"""Run folders: the record of a run, which suffices to repeat it, and everything that the run wrote.

::

    RUN/run.json         the settings, where each came from, the environment, how the run ended
    RUN/metrics.jsonl    one record per step or evaluation
    RUN/checkpoints/     training states to resume from
    RUN/model/           the result, a Hugging Face folder
    RUN/models/          snapshots of the model during the run, if requested
    RUN/*.svg            plots
"""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy
import tokenizers
import torch

from bertkit._version import __version__
from bertkit.errors import WRONG_USAGE, BertkitError, DivergenceError, count_of, data_error, usage_error
from bertkit.storage.atomic import (
    explain_output,
    explain_writing,
    flush_to_disk,
    make_folder,
    remove_temporaries,
)
from bertkit.storage.checksums import read_record, require_format, write_checked
from bertkit.storage.json_log import format_record, open_log, read_log, rewrite_log
from bertkit.storage.locks import LockHeldError, exclusive_lock
from bertkit.storage.outputs import require_own_folder

FORMAT = 3
"""Version of the layout of a run folder; ``run.json`` carries it."""


_CONTENT = (
    *("checkpoints", "metrics.jsonl", "model", "models", "training.svg"),
    *("seeds", "results.json", "epochs.svg", "confusion.svg"),
    *("points", "best", "journal.log", "sweep.json", "sweep.md", "sweep.svg"),
    *("config.json", "manifest.json"),  # of a model and of a corpus, which no run belongs into
)
"""What a run writes after its record: pre-training, fine-tuning and sweeps."""

_HOLDER = re.compile(r"process \d+ on \S+")
"""What ``run.lock`` says of the process that holds it, or that was killed while it did."""


DONE = "done"
"""What ``ended`` is in the record of a finished run."""

FAILED = "failed: "
"""How ``ended`` begins in the record of a run whose training diverged; it is null where a run was interrupted."""


def find_named_folder(model: Path) -> Path:
    """The folder that a model is called by: ``RUN`` for ``RUN/model``, else the folder of the model itself."""
    return model.parent if model.name == "model" else model


class InUseError(BertkitError):
    """Another process holds the run folder."""


class RunFolder:
    """A run folder, locked by this process inside a ``with`` block.

    If another process holds the lock, entering raises InUseError, or waits with ``wait``. When several processes train
    together, only the one with ``writes`` locks the folder and writes to it.
    """

    def __init__(self, path: Path, *, writes: bool = True, wait: bool = False) -> None:
        self.path = path
        self.writes = writes
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"
        self.models = path / "models"
        self.metrics = path / "metrics.jsonl"
        self.record = path / "run.json"
        self.notices: list[str] = []
        """What to tell the user: the process that held the folder was killed, or a part of the log is damaged."""
        self._wait = wait
        self._holder = path / "run.lock"
        self._lock = ExitStack()
        self._log: IO[str] | None = None
        self._is_new = False

    def __enter__(self) -> RunFolder:
        if not self.writes:
            return self
        self._is_new = not self.path.exists()
        with ExitStack() as stack:
            with explain_output(self.path):
                require_own_folder(self.record, _CONTENT)
                make_folder(self.path)
                try:
                    stack.enter_context(exclusive_lock(self._holder, wait=self._wait))
                except LockHeldError as error:
                    holder = self._read_holder() or "another process"
                    message = f"{self.path} is in use by {holder}. Choose another -o folder."
                    raise InUseError(message, exit_code=WRONG_USAGE) from error
            if before := self._read_holder():
                if not _HOLDER.fullmatch(before) and not self.record.exists():
                    raise usage_error(f"{self._holder} was not written by bertkit. Choose another -o folder.")
                self.notices.append(f"{before} held {self.path} until it was killed; this process takes over")
            with explain_writing(self._holder):
                self._write_holder()
            for folder in (self.path, self.checkpoints, self.models):
                remove_temporaries(folder)
            self.delete_records(lambda record: False)
            self._lock = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # log() has raised an error about what could not be written
            if self._log is not None:
                self._log.close()
        if self.writes:
            if isinstance(error, DivergenceError) and self.record.exists():
                with suppress(OSError, BertkitError):
                    self.note(ended=f"{FAILED}{error}")
            with suppress(OSError):
                self._holder.write_text("", encoding="utf-8")  # a text that remains there names a killed process
            if error is not None and self._is_new:
                self._remove_if_unused()
            self._lock.close()

    def _remove_if_unused(self) -> None:
        """Remove the folder that an error left with nothing but the lock: the next command may have another output."""
        with suppress(OSError):
            if [each.name for each in self.path.iterdir()] == [self._holder.name]:
                self._holder.unlink()
                self.path.rmdir()

    def _write_holder(self) -> None:
        """Say who holds the folder; a full disk leaves no beginning of it, which would look like another program's."""
        try:
            self._holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        except OSError:
            os.truncate(self._holder, 0)
            raise

    def begin(self, run: Mapping[str, object], **facts: object) -> None:
        """Write ``run.json`` with the settings ``run`` and other ``facts``; a usage error if the folder has one."""
        if not self.writes:
            return
        if self.record.exists():
            raise usage_error(f"{self.path} holds a run already. Resume it, or choose another -o folder.")
        facts |= {"command": sys.argv, "environment": environment(), "ended": None}
        write_checked(self.record, {"format": FORMAT, "run": dict(run), **facts})

    def note(self, **facts: object) -> None:
        """Add facts to ``run.json``."""
        write_checked(self.record, {**read_run(self.path), **facts})

    def log(self, record: Mapping[str, object]) -> None:
        """Append one line to ``metrics.jsonl``."""
        if not self.writes:
            return
        with explain_writing(self.metrics):
            if self._log is None:
                self._log = open_log(self.metrics)
            self._log.write(format_record(record))
            self._log.flush()

    def flush_log(self) -> None:
        """Flush the log to disk: no checkpoint may outlast the records of its steps."""
        if self._log is not None:
            with explain_writing(self.metrics):
                os.fsync(self._log.fileno())
                flush_to_disk(self.path)

    def delete_records(self, is_repeated: Callable[[Mapping[str, Any]], bool]) -> None:
        """Delete the records of steps that will be repeated, and an incomplete last line; set damaged lines aside."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if os.path.lexists(self.metrics):
            with explain_writing(self.metrics):
                damaged = rewrite_log(self.metrics, lambda record: not is_repeated(record))
            if damaged:
                lines = count_of(damaged, "damaged line")
                self.notices.append(f"set aside in {self.metrics}.damaged: {lines} of {self.metrics}")

    def _read_holder(self) -> str:
        return self._holder.read_text(encoding="utf-8", errors="replace").strip()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The intact records of ``metrics.jsonl``."""
    return read_log(path).records


def read_run(path: Path) -> dict[str, Any]:
    """The content of ``run.json`` of a run folder; raises a data error if it is damaged or has another format."""
    if not (path / "run.json").exists():
        raise BertkitError(
            f"{path} is not a run folder: it has no run.json. A run that was stopped before it began starts again with "
            "its command.",
            exit_code=WRONG_USAGE,
        )
    record = read_record(path / "run.json")
    require_format(path / "run.json", record, FORMAT, "Start the run again in another -o folder.")
    data: type = list if record.get("kind") == "pretrain" else dict
    record = {"origins": {}, "data": data(), "ended": None, **record}
    if not isinstance(record.get("kind"), str) or not isinstance(record.get("run"), dict):
        raise data_error(f"{path / 'run.json'} is not the record of a run: it has no kind and settings.")
    if not isinstance(record["origins"], dict) or not isinstance(record["data"], data):
        raise data_error(f"{path / 'run.json'} is not the record of a run: its origins or data are of another kind.")
    return record


class RunEnd(NamedTuple):
    """Whether a run has made its last step, and why its training diverged; an interrupted run has neither."""

    is_done: bool
    failure: str


def read_end(path: Path) -> RunEnd:
    """The end of the run in the folder ``path``; without a record, that of an unfinished run."""
    ended = str(read_run(path)["ended"] or "") if (path / "run.json").exists() else ""
    return RunEnd(ended == DONE, ended.removeprefix(FAILED) if ended.startswith(FAILED) else "")


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings in which two records differ, by path, such as ``optimizer.lr``."""
    found = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += [f"{name}.{inner}" for inner in differing_settings(old, new)]
        elif old != new or name not in before or name not in now:
            found.append(name)
    return found


def environment() -> dict[str, str]:
    """Versions of libraries, the machine and the time, for ``run.json``."""
    return {
        "bertkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tokenizers": tokenizers.__version__,
        "numpy": numpy.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
