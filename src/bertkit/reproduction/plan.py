"""What a reproduction would train and what that would cost, before anything is there.

Operations are counted on a made-up row that is full. A machine does them at half the speed of its matrix products: so
much the trainer was seen to reach (docs/results/speed.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bertkit.batch import IGNORE, Batch
from bertkit.pretraining.model_size import sketch_model
from bertkit.pretraining.record import PretrainRun
from bertkit.report.progress import describe_duration
from bertkit.report.tables import markdown_table
from bertkit.training.flops import count_flops
from bertkit.training.precision import choose_precision, default_device, measure_matmul_speed

_REACHED = 0.5


@dataclass(frozen=True, kw_only=True)
class PlannedPretraining:
    """A network that would be pre-trained: its parameters, steps, and floating-point operations."""

    name: str
    parameters: int
    steps: int
    flop: float


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan:
    """``finetunings`` counts trainings: every task, network, learning rate and seed. ``speed`` is in FLOP/s."""

    pretrainings: list[PlannedPretraining]
    finetunings: int
    speed: float

    def lines(self) -> list[str]:
        """The plan for a person."""
        rows = [
            (each.name, f"{each.parameters / 1e6:,.2f} M", f"{each.steps:,}", f"{each.flop:.1e}", self._time(each.flop))
            for each in self.pretrainings
        ]
        total = sum(each.flop for each in self.pretrainings)
        table = markdown_table(("pre-training", "parameters", "steps", "FLOP", "time here"), rows)
        return [
            *table.rstrip("\n").split("\n"),
            "",
            f"pre-training in all  {total:.1e} FLOP: about {self._time(total)} on one such device, at "
            f"{self.speed / 1e9:,.0f} GFLOP/s",
            f"fine-tuning          {self.finetunings:,} trainings; what they take is not in that",
        ]

    def _time(self, flop: float) -> str:
        return describe_duration(flop / self.speed)


def plan_pretraining(name: str, run: PretrainRun) -> PlannedPretraining:
    """The cost of one run; its data need not be there."""
    assert run.steps is not None
    model = sketch_model(run)
    long_steps = 0 if run.long_seq_length is None else int(run.steps * run.long_share)
    phases = [(run.steps - long_steps, run.seq_length), (long_steps, run.long_seq_length or run.seq_length)]
    flop = sum(steps * count_flops(model, _make_up_row(run, length)) for steps, length in phases)
    return PlannedPretraining(
        name=name,
        parameters=sum(each.numel() for each in model.parameters()),
        steps=run.steps,
        flop=float(flop * run.batch_size),
    )


def measure_speed() -> float:
    """FLOP/s that training is expected to reach here."""
    device = default_device()
    return _REACHED * measure_matmul_speed(device)[choose_precision(device)] * 1e9


def _make_up_row(run: PretrainRun, length: int) -> Batch:
    """A row of this length with as many labels as real ones have."""
    nothing = torch.zeros(1, length, dtype=torch.long)
    every = {
        "mlm": torch.where(torch.arange(length) < round(run.task.masking.rate * length), nothing, IGNORE),
        "clm": torch.where(torch.arange(length) < length - 1, nothing, IGNORE),
        "bilm": nothing[:, :, None].expand(-1, -1, 2),
        "nsp": torch.zeros(1, dtype=torch.long),
    }
    labels = {name: every[name] for name in run.task.objectives}
    return Batch(
        input_ids=nothing, segment_ids=nothing, attention_mask=torch.ones(1, length, dtype=torch.bool), labels=labels
    )
