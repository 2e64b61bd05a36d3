"""The record of a pre-training run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bertkit.config.records import from_plain, to_plain
from bertkit.contracts import EncoderConfig, PretrainingObjective
from bertkit.encoder_types.architectures import find_architecture, name_architecture
from bertkit.encoder_types.settings import context_of, has_lstm
from bertkit.errors import data_error, usage_error
from bertkit.lookup import names_from_a_file
from bertkit.machine.precision import Precision
from bertkit.pretraining.defaults import default_objectives
from bertkit.pretraining.task import PretrainingTask
from bertkit.ranges import (
    BatchSize,
    LearningRate,
    Length,
    Minutes,
    OpenShare,
    PositiveInt,
    Seed,
    Share,
    ShareAboveZero,
    ShareBelowOne,
    Threads,
    check_ranges,
)
from bertkit.training.averaging import AveragingConfig
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.schedule import ScheduleConfig, whole_steps

_CONTEXTS = {
    "bidirectional": "an encoder in which every token attends to all others",
    "causal": "a causal encoder",
    "two_directions": "an encoder with two separate directions, such as elmo",
}


@dataclass(frozen=True, kw_only=True)
class PretrainRun:
    """The settings of one pre-training. One of ``steps`` and ``minutes`` is given.

    With ``minutes`` the run is timed: the learning rate, the masking rate and the length of the rows follow the time
    since the beginning, evaluations and checkpoints included, and every share is a share of it.

    With ``long_seq_length`` the last ``long_share`` of the steps use longer rows: the paper's 128, then 512. The paper
    does not say whether the optimizer and its schedule ``continue`` there; with ``restart`` both start again.
    ``long_batch_size``, ``long_lr`` and ``long_warmup`` default to the values of the short rows; ``long_lr`` changes
    ``optimizer.muon_lr`` by the same factor as ``optimizer.lr``.

    ``loader_workers`` threads prepare the batches of the next steps; with 0 each step prepares its own. None means 1 on
    a GPU and 0 on a CPU. ``token_init`` says where the token embeddings start: at random values, or at vectors computed
    from the co-occurrence counts of the corpus. ``snapshots`` models, the last one included, are kept at equal
    intervals.

    With ``from_model`` the weights start from those of a model folder, and ``encoder`` is its configuration. If the
    model lacks a head, all heads are trained alone, with the encoder frozen, for the first ``head_share`` of the steps,
    under a schedule of its own with ``head_lr`` in place of ``optimizer.lr``; what Muon trains has
    ``optimizer.muon_lr`` as its peak there too. ``also_evaluate`` is a second prepared folder, whose held-out rows are
    evaluated together with those of ``data``.

    ``mix`` names more prepared folders, and the share of the rows that is taken from each; the rest is from ``data``.
    """

    data: Path
    output: Path
    mix: Mapping[str, OpenShare] = field(default_factory=dict)
    from_model: Path | None = None
    also_evaluate: Path | None = None
    encoder: EncoderConfig
    task: PretrainingTask = field(default_factory=PretrainingTask)
    steps: PositiveInt | None = None
    minutes: Minutes | None = None
    seq_length: Length = 128
    long_seq_length: Length | None = None
    long_share: ShareAboveZero = 0.1
    long_phase: Literal["continue", "restart"] = "continue"
    long_batch_size: BatchSize | None = None
    long_lr: LearningRate | None = None
    long_warmup: Share | None = None
    batch_size: BatchSize = 256
    micro_batch_size: BatchSize | None = None
    gradient_checkpointing: bool = False
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    averaging: AveragingConfig = field(default_factory=AveragingConfig)
    precision: Precision | None = None
    shard: bool = False
    loader_workers: Threads | None = None
    token_init: Literal["random", "cooccurrence"] = "random"
    head_share: ShareBelowOne = 0.0
    head_lr: LearningRate = 1e-3
    seed: Seed = 0
    log_every: PositiveInt = 10
    evaluate_every: PositiveInt = 500
    evaluation_examples: PositiveInt = 2000
    save_every: PositiveInt = 500
    keep_checkpoints: PositiveInt = 2
    snapshots: PositiveInt = 1

    def __post_init__(self) -> None:
        check_ranges(self)
        if has_lstm(self.encoder):
            if self.from_model is not None:
                raise usage_error(f"{self.from_model} has a BiLSTM on top, which pre-training lacks: take another.")
            raise usage_error("encoder.lstm_layers is for fine-tuning: bertkit finetune --set lstm_layers=2.")
        context = context_of(self.encoder)
        for name, objective in zip(self.task.objectives, self.task.objective_classes(), strict=True):
            if objective.context not in (None, context):
                raise usage_error(
                    f"task.objectives has {name}, which needs {_CONTEXTS[str(objective.context)]}; "
                    f"this one is {_CONTEXTS[context]}: {self._advise_on_objective(objective)}."
                )
        for name in ("long_phase", "long_batch_size", "long_lr", "long_warmup"):
            if getattr(self, name) not in (None, "continue") and self.long_seq_length is None:
                raise usage_error(f"{name} needs long_seq_length: without it there are no long rows.")
        if self.long_seq_length is not None and self.long_seq_length <= self.seq_length:
            raise usage_error(
                f"long_seq_length is {self.long_seq_length} and seq_length {self.seq_length}; it must be longer: set "
                "both, or long_seq_length=null for rows of one length."
            )
        if self.long_warmup is not None and self.long_phase == "continue":
            raise usage_error("long_warmup needs long_phase=restart: a schedule that continues has one warm-up.")
        for name, rate in {"long_lr": self.long_lr, "head_lr": self.head_lr if self.head_share else None}.items():
            if rate == 0 and self.optimizer.kind == "muon":
                raise usage_error(f"{name} is 0; muon needs a rate above 0.")
        self._check_mixture()
        self._check_initial_weights()
        if self.averaging.kind == "tail" and self.long_phase == "restart":
            raise usage_error("averaging.kind is tail; it needs one schedule, so leave out long_phase=restart.")
        if self.averaging.kind == "tail" and self.head_share:
            raise usage_error("averaging.kind is tail; it needs one schedule, and a new head has its own: use ema.")
        if self.is_timed and self.long_phase == "restart":
            raise usage_error("long_phase is restart; that needs --steps: a timed run has one schedule.")

    def _advise_on_objective(self, objective: type[PretrainingObjective]) -> str:
        """What to do about an objective that the encoder does not suit."""
        if self.from_model is not None:
            return f"leave it out of task.objectives, as the encoder is that of {self.from_model}"
        advice = f"give --set 'task.objectives={json.dumps(default_objectives(self.encoder))}'"
        can_change = objective.context == "causal" and hasattr(self.encoder, "causal")
        return f"{advice}, or encoder.causal=true" if can_change else advice

    def needs(self) -> dict[str, str]:
        """The settings that these ones switch off, and what would switch them on."""
        long_rows = {} if self.long_seq_length else {"long_share": "long_seq_length"}
        return long_rows if self.head_share else long_rows | {"head_lr": "head_share"}

    @property
    def corpora(self) -> Sequence[tuple[Path, float]]:
        """The folders of all corpora, and the share of the rows from each."""
        return [(self.data, 1 - sum(self.mix.values())), *((Path(folder), share) for folder, share in self.mix.items())]

    def rows_at_once(self, rows: int, processes: int = 1) -> int:
        """How many of the ``rows`` of a batch one of the ``processes`` computes together: those of a micro-batch."""
        return min(self.micro_batch_size or rows, rows // processes)

    @property
    def heads_until(self) -> float:
        """Where the training of new heads alone ends: a step, or in a timed run a second."""
        if self.is_timed:
            return self.head_share * self.length
        steps = int(self.length)
        return min(max(1, whole_steps(self.head_share, steps)), steps - 1) if self.head_share else 0

    @property
    def first_long(self) -> float:
        """Where the long rows begin, if there are any: a step, or in a timed run a second."""
        if self.is_timed:
            return self.length * (1 - self.long_share)
        return self.length - whole_steps(self.long_share, int(self.length))

    @property
    def length(self) -> float:
        """All steps, or in a timed run all seconds."""
        if self.steps is not None:
            return self.steps
        assert self.minutes is not None, "give steps or minutes first"
        return 60 * self.minutes

    @property
    def is_timed(self) -> bool:
        """Whether the time decides, and not a number of steps. Old records have both; then steps count."""
        return self.steps is None and self.minutes is not None

    def _check_mixture(self) -> None:
        """Check the settings that depend on whether several corpora are mixed."""
        total = sum(self.mix.values())
        if total >= 1:
            raise usage_error(f"mix takes {total:g} of the rows, and DATA gives the rest: lower it to less than 1.")
        if self.mix and self.task.reads_streams:
            raise usage_error(
                f"mix is for rows in random order, and those of {', '.join(self.task.objectives)} follow each other: "
                "prepare all files into one folder."
            )
        if self.mix and self.task.copies:
            raise usage_error("mix and task.copies cannot be combined: a mixture has other rows in every epoch.")

    def _check_initial_weights(self) -> None:
        """Check the settings that depend on whether the weights start from those of a model."""
        if self.head_share and self.from_model is None:
            raise usage_error("head_share needs --from MODEL: without it all weights are new.")
        if self.head_share and self.steps == 1:
            raise usage_error("head_share trains a new head before the encoder, for which one step is too few: take 2.")
        if self.long_seq_length is not None and self.head_share + self.long_share >= 1:
            if not self.head_share:
                raise usage_error(f"long_share is {self.long_share}; it must be below 1, or give seq_length alone.")
            raise usage_error(
                f"head_share is {self.head_share} and long_share {self.long_share}; together they must be below 1."
            )
        if self.token_init != "random" and self.from_model is not None:
            raise usage_error(f"token_init={self.token_init} and --from MODEL both set the token embeddings; give one.")

    @property
    def chosen_precision(self) -> Precision:
        """``precision``, which is given or measured before anything is trained or timed."""
        assert self.precision is not None, "choose a precision first"
        return self.precision

    @property
    def phase_shares(self) -> list[float]:
        """The share of the steps, or of the time, that each phase has: short rows, then long rows if there are any."""
        return [1.0] if self.long_seq_length is None else [1 - self.long_share, self.long_share]

    @property
    def tokens_per_step(self) -> float:
        """Tokens per step if every row is full, the mean over the steps of both phases."""
        return sum(share * tokens for share, tokens in zip(self.phase_shares, self.tokens_per_phase, strict=True))

    @property
    def tokens_per_phase(self) -> list[int]:
        """Tokens per step of each phase if every row is full."""
        return [rows * length for rows, length in self.batch_shapes]

    @property
    def batch_shapes(self) -> list[tuple[int, int]]:
        """The rows of a batch and the tokens of a full row, of each phase."""
        short = (self.batch_size, self.seq_length)
        if self.long_seq_length is None:
            return [short]
        return [short, (self.long_batch_size or self.batch_size, self.long_seq_length)]


def pretraining_to_json(run: PretrainRun) -> dict[str, object]:
    """The settings of a pre-training as plain JSON; ``architecture`` is the name of the encoder's module."""
    return {"architecture": name_architecture(run.encoder), **to_plain(run)}


def pretraining_from_json(record: Mapping[str, object], *, source: str = "the record") -> PretrainRun:
    """The run that ``pretraining_to_json`` wrote; ``source`` is its place, for errors."""
    values = dict(record)
    if "architecture" not in values:
        raise data_error(f"{source} has no architecture, so its encoder is not known.")
    with names_from_a_file():
        architecture = find_architecture(str(values.pop("architecture")))
        encoder = from_plain(architecture.config, values.get("encoder"), source=source)
        return from_plain(PretrainRun, {**values, "encoder": encoder}, source=source)
