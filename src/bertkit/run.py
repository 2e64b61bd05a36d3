"""The records of experiments, and the folder that each of them lives in.

A run folder is enough to repeat the run::

    RUN/run.json         what was asked, with what, where each value came from, how it ended
    RUN/metrics.jsonl    one record a step or evaluation
    RUN/checkpoints/     states to resume from
    RUN/model/           the result, a Hugging Face folder
    RUN/models/          the same on the way there, if it was asked for
    RUN/*.png            pictures
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

import numpy
import tokenizers
import torch

from bertkit import config
from bertkit._version import __version__
from bertkit.encoders import EncoderConfig, find_architecture, name_architecture
from bertkit.errors import WRONG_USAGE, BertkitError, usage_error
from bertkit.storage import (
    explain_output,
    explain_writing,
    flush_to_disk,
    make_folder,
    read_json,
    remove_temporaries,
    write_file,
    write_json,
)
from bertkit.tasks import FileTask
from bertkit.tasks.pretrain import PretrainingTask
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.precision import Precision
from bertkit.training.schedule import ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class PretrainRun:
    """One pre-training. Of ``steps`` and ``minutes`` one is given; minutes are turned into steps by measuring.

    With ``long_seq_length`` the last ``long_share`` of the steps use longer rows: the paper's 128 then 512. Whether the
    optimizer and its schedule ``continue`` there the paper does not say; with ``restart`` both begin anew. A long batch
    size, rate or warm-up that is not given is that of the short rows.

    ``loader_workers`` threads make the batches of the steps to come; with 0 each step makes its own. None is 1 for a
    GPU and 0 for a CPU. ``snapshots`` models, the finished one among them, are kept at even distances.
    """

    data: Path
    output: Path
    encoder: EncoderConfig
    task: PretrainingTask = field(default_factory=PretrainingTask)
    steps: int | None = None
    minutes: float | None = None
    seq_length: int = 128
    long_seq_length: int | None = None
    long_share: float = 0.1
    long_phase: Literal["continue", "restart"] = "continue"
    long_batch_size: int | None = None
    long_lr: float | None = None
    long_warmup: float | None = None
    batch_size: int = 256
    micro_batch_size: int | None = None
    gradient_checkpointing: bool = False
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    precision: Precision | None = None
    shard: bool = False
    loader_workers: int | None = None
    seed: int = 0
    log_every: int = 10
    evaluate_every: int = 500
    evaluation_examples: int = 2000
    save_every: int = 500
    keep_checkpoints: int = 2
    snapshots: int = 1

    def __post_init__(self) -> None:
        if getattr(self.encoder, "lstm_layers", 0):
            raise usage_error("encoder.lstm_layers is for fine-tuning: bertkit finetune --set lstm_layers=2.")
        if self.encoder.asked_words != self.task.words:
            raise usage_error(
                f"task.words is {self.task.words}, and this encoder can be asked for {self.encoder.asked_words} words: "
                "masked ones are for one that reads all others, next ones for one that cannot read them."
            )
        for name in ("long_phase", "long_batch_size", "long_lr", "long_warmup"):
            if getattr(self, name) not in (None, "continue") and self.long_seq_length is None:
                raise usage_error(f"{name} is given and long_seq_length is not: there are no long rows.")
        if self.long_warmup is not None and self.long_phase == "continue":
            raise usage_error("long_warmup is given and long_phase is continue: one schedule has one warm-up.")
        for name, least in {"long_batch_size": 1, "long_lr": 0, "long_warmup": 0, "loader_workers": 0}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise usage_error(f"{name} is {value}; it must be {least} or more.")

    @property
    def tokens_per_step(self) -> float:
        """Tokens that a step reads if every row is full, the mean over both phases."""
        short = self.batch_size * self.seq_length
        if self.long_seq_length is None:
            return short
        long = (self.long_batch_size or self.batch_size) * self.long_seq_length
        return (1 - self.long_share) * short + self.long_share * long


def pretraining_to_json(run: PretrainRun) -> dict[str, Any]:
    """The record of a pre-training, with the name of its ``architecture``: the file on the shelf of encoders."""
    return {"architecture": name_architecture(run.encoder), **config.to_json(run)}


def pretraining_from_json(record: Mapping[str, Any], *, source: str = "the record") -> PretrainRun:
    """The pre-training that such a record is of; without an ``architecture`` it is BERT's, as all once were."""
    values = dict(record)
    architecture = find_architecture(str(values.pop("architecture", "bert")))
    encoder = config.from_json(architecture.config, values.get("encoder"), source=source)
    return config.from_json(PretrainRun, {**values, "encoder": encoder}, source=source)


@dataclass(frozen=True, kw_only=True)
class FinetuneRun:
    """One fine-tuning with ``seeds`` restarts (paper, section A.3: 3 epochs, 5e-5, batch 32 are in its grid).

    ``from_scratch`` keeps the architecture and the vocabulary of ``model`` and draws new weights. ``limit`` takes the
    first so many training examples, ``dev_limit`` those of dev, which is for a first look. For small data:
    ``reinit_layers`` draws that many of the last blocks, and the pooler, anew; with ``layer_decay`` below 1 every layer
    learns with so much of the rate of the layer above it, from the heads, which have all of it, down to the embeddings
    (Zhang et al., arXiv 2006.05987).

    With a ``language_weight`` an encoder that reads from left to right also learns which piece comes next in the
    training examples, a loss that counts so much beside the task's (Radford et al. 2018, equation 5). With
    ``lstm_layers`` a BERT gets a BiLSTM of so many layers on top, drawn by the seed: "+ BiLSTM" of the paper's Table 5.
    """

    task: FileTask
    model: Path
    output: Path
    from_scratch: bool = False
    seeds: int = 1
    first_seed: int = 0
    epochs: int = 3
    batch_size: int = 32
    micro_batch_size: int | None = None
    gradient_checkpointing: bool = False
    limit: int | None = None
    dev_limit: int | None = None
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=5e-5, bias_correction=True))
    schedule: ScheduleConfig = field(default_factory=lambda: ScheduleConfig(warmup=0.1, decay="linear"))
    precision: Precision | None = None
    reinit_layers: int = 0
    layer_decay: float = 1.0
    language_weight: float = 0.0
    lstm_layers: int = 0

    def __post_init__(self) -> None:
        for name in ("seeds", "epochs", "batch_size", "micro_batch_size", "limit", "dev_limit"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise usage_error(f"{name} is {count}; it must be 1 or more.")
        for name in ("reinit_layers", "language_weight", "lstm_layers"):
            if getattr(self, name) < 0:
                raise usage_error(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        if not 0 < self.layer_decay <= 1:
            raise usage_error(f"layer_decay is {self.layer_decay}; it must be above 0 and at most 1.")


class InUseError(BertkitError):
    """Another process holds the run folder."""


class RunFolder:
    """A run folder held by this process alone, from ``with`` to the end of it.

    Of several processes that make one run together one ``writes``; to the others it is a name.
    """

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self.path = path
        self.writes = writes
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"
        self.models = path / "models"
        self.metrics = path / "metrics.jsonl"
        self.record = path / "run.json"
        self.notice = ""
        """What a person should know about the process that held the folder before; empty if it left in order."""
        self._lock: IO[str] | None = None
        self._log: IO[str] | None = None

    def __enter__(self) -> RunFolder:
        if not self.writes:
            return self
        with explain_output(self.path):
            make_folder(self.path)
            self._lock = (self.path / "run.lock").open("a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._read_holder() or "another process"
            self._lock.close()
            message = f"{self.path} is in use by {holder}. Choose another -o folder."
            raise InUseError(message, exit_code=WRONG_USAGE) from error
        if before := self._read_holder():
            self.notice = f"{before} held {self.path} until it was cut off; taking over"
        with explain_writing(self.path / "run.lock"):
            self._lock.truncate(0)
            self._lock.write(f"process {os.getpid()} on {socket.gethostname()}")
            self._lock.flush()
        for folder in (self.path, self.checkpoints, self.models):
            remove_temporaries(folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what cannot be written was said when it was tried
            if self._log is not None:
                self._log.close()
        if self._lock is not None:
            with suppress(OSError):
                self._lock.truncate(0)  # a name that is left in it is that of a process that was killed
            self._lock.close()

    def begin(self, run: Mapping[str, Any], **facts: Any) -> None:
        """Write ``run.json``; a folder that holds a run already is refused."""
        if not self.writes:
            return
        if self.record.exists():
            raise usage_error(f"{self.path} holds a run already. Resume it, or choose another -o folder.")
        record = {"run": dict(run), **facts, "command": sys.argv, "environment": environment(), "ended": None}
        write_json(self.record, record)

    def note(self, **facts: Any) -> None:
        """Add facts to ``run.json``."""
        write_json(self.record, {**read_json(self.record), **facts})

    def log(self, record: Mapping[str, Any]) -> None:
        """Append one line to ``metrics.jsonl``."""
        if not self.writes:
            return
        with explain_writing(self.metrics):
            if self._log is None:
                self._log = self.metrics.open("a", encoding="utf-8")
            self._log.write(json.dumps(record) + "\n")
            self._log.flush()

    def flush_log(self) -> None:
        """Make durable what was logged: no checkpoint may outlast the records of its steps."""
        if self._log is not None:
            with explain_writing(self.metrics):
                os.fsync(self._log.fileno())
                flush_to_disk(self.path)

    def forget(self, done_again: Callable[[Mapping[str, Any]], bool]) -> None:
        """Drop the records of what will be done again, and a torn last line."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if self.metrics.exists():
            kept = [json.dumps(record) + "\n" for record in read_metrics(self.metrics) if not done_again(record)]
            write_file(self.metrics, lambda path: path.write_text("".join(kept), encoding="utf-8"))

    def _read_holder(self) -> str:
        assert self._lock is not None
        self._lock.seek(0)
        return self._lock.read().strip()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records of ``metrics.jsonl``; a line torn by a crash ends the reading."""
    records: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def read_run(path: Path) -> dict[str, Any]:
    """The content of ``run.json`` of a run folder."""
    if not (path / "run.json").exists():
        raise BertkitError(f"{path} is not a run folder: it has no run.json.", exit_code=2)
    record: dict[str, Any] = read_json(path / "run.json")
    return record


def environment() -> dict[str, str]:
    """Versions and machine, for the record."""
    return {
        "bertkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tokenizers": tokenizers.__version__,
        "numpy": numpy.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
