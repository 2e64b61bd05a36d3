"""The record of a fine-tuning run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bertkit.errors import usage_error
from bertkit.task_types import FileTask
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.precision import Precision
from bertkit.training.schedule import ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class FinetuneRun:
    """One fine-tuning with ``seeds`` restarts (paper, section A.3: 3 epochs, 5e-5, batch 32 are in its grid).

    ``from_scratch`` keeps the architecture and the vocabulary of ``model`` and draws new weights. ``limit`` takes the
    first so many training examples, ``dev_limit`` those of dev, which is for a first look. For small data:
    ``reinit_layers`` draws that many of the last blocks, and the pooler, anew; with ``layer_decay`` below 1 every layer
    learns with so much of the rate of the layer above it, from the heads, which have all of it, down to the embeddings
    (Zhang et al., arXiv 2006.05987).

    With a ``lm_loss_weight`` an encoder that reads from left to right also learns which piece comes next in the
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
    lm_loss_weight: float = 0.0
    lstm_layers: int = 0

    def __post_init__(self) -> None:
        for name in ("seeds", "epochs", "batch_size", "micro_batch_size", "limit", "dev_limit"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise usage_error(f"{name} is {count}; it must be 1 or more.")
        for name in ("reinit_layers", "lm_loss_weight", "lstm_layers"):
            if getattr(self, name) < 0:
                raise usage_error(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        if not 0 < self.layer_decay <= 1:
            raise usage_error(f"layer_decay is {self.layer_decay}; it must be above 0 and at most 1.")
