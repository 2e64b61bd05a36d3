"""The record of a fine-tuning run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bertkit.errors import usage_error
from bertkit.machine.precision import Precision
from bertkit.ranges import (
    BatchSize,
    ExtraLayers,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Repetitions,
    Seed,
    ShareAboveZero,
    check_ranges,
)
from bertkit.task_types import FileTask, SimilarityTask
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.schedule import ScheduleConfig

LEAST_COMPARED = 3
"""Texts of a micro-batch whose layers are matched: how alike two texts are is the same for all, up to a factor."""

NEEDS_TEACHER = {
    "unlabelled": "predictions take the place of labels",
    "temperature": "probabilities it softens",
    "teacher_weight": "part of the loss it multiplies",
    "layer_weight": "layers are matched",
}
"""Settings that have no effect without a teacher, and for each the end of "without a teacher, whose ..."."""


@dataclass(frozen=True, kw_only=True)
class FinetuneRun:
    """The settings of one fine-tuning with ``seeds`` restarts; the defaults are in the grid of the paper's section A.3.

    ``from_scratch`` keeps the architecture and the vocabulary of ``model`` and initialises new weights. ``limit`` and
    ``dev_limit`` use the first N training and dev examples only, for quick trials. For small data (Zhang et al., arXiv
    2006.05987): ``reinit_layers`` initialises the last N layers and the pooler again; ``layer_decay`` below 1 is the
    learning rate of a layer relative to the layer above it, from the heads, which have the full rate, down to the
    embeddings.

    ``lm_loss_weight`` adds a next-token loss on the training examples with this weight, for left-to-right encoders
    (Radford et al. 2018, equation 5). ``lstm_layers`` puts a new BiLSTM of N layers on a BERT: "+ BiLSTM" in Table 5 of
    the paper.

    With a ``teacher``, a model that was fine-tuned for the same classes, the loss against its probabilities at
    ``temperature`` is added with ``teacher_weight``, also for the texts of the file ``unlabelled``. With a
    ``layer_weight`` the layers are matched too (``layer_matching.py``).
    """

    task: FileTask
    model: Path
    output: Path
    from_scratch: bool = False
    seeds: Repetitions = 1
    first_seed: Seed = 0
    epochs: Repetitions = 3
    batch_size: BatchSize = 32
    micro_batch_size: BatchSize | None = None
    gradient_checkpointing: bool = False
    limit: PositiveInt | None = None
    dev_limit: PositiveInt | None = None
    baseline: bool = True
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=5e-5, bias_correction=True))
    schedule: ScheduleConfig = field(default_factory=lambda: ScheduleConfig(warmup=0.1, decay="linear"))
    precision: Precision | None = None
    reinit_layers: ExtraLayers = 0
    layer_decay: ShareAboveZero = 1.0
    lm_loss_weight: NonNegativeFloat = 0.0
    lstm_layers: ExtraLayers = 0
    teacher: Path | None = None
    unlabelled: Path | None = None
    temperature: PositiveFloat = 2.0
    teacher_weight: NonNegativeFloat = 1.0
    layer_weight: NonNegativeFloat = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        for name, use in NEEDS_TEACHER.items():
            if self.teacher is None and getattr(self, name) != getattr(FinetuneRun, name):  # its default
                raise usage_error(f"{name} has no effect without a teacher, whose {use}: add --teacher MODEL.")
        if self.layer_weight and min(self.batch_size, self.micro_batch_size or self.batch_size) < LEAST_COMPARED:
            raise usage_error(
                "layer_weight compares the texts that are computed together: batch_size and micro_batch_size must be "
                f"at least {LEAST_COMPARED}."
            )
        compares = isinstance(self.task, SimilarityTask) and self.task.training == "pairs"
        if compares and min(self.batch_size, self.micro_batch_size or self.batch_size) == 1:
            raise usage_error(
                "task.training is pairs, which compares the pairs that are computed together: batch_size and "
                "micro_batch_size must be at least 2."
            )
