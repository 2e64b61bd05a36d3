"""The cost of a reproduction on this machine, before any data is prepared.

Operations are counted on an artificial row without padding. A machine is expected to do them at half the speed of its
matrix products, which is what the trainer reached (docs/results/speed.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bertkit.batch import IGNORE, Batch
from bertkit.machine.device import default_device
from bertkit.machine.precision import choose_precision, expected_speed
from bertkit.pretraining.model_size import sketch_model
from bertkit.pretraining.record import PretrainRun
from bertkit.report.progress import describe_duration
from bertkit.report.tables import markdown_table
from bertkit.reproduction.pretrainings import Pretraining, match_parameters
from bertkit.results import Result
from bertkit.training.flops import count_flops


@dataclass(frozen=True, kw_only=True)
class PretrainingEstimate:
    """Parameters, steps and floating-point operations of a pre-training."""

    name: str
    parameters: int
    steps: int
    flop: float


@dataclass(frozen=True, kw_only=True, repr=False)
class ReproductionEstimate(Result):
    """``finetunings`` counts trainings: every task, system, learning rate and seed. ``speed`` is in FLOP/s."""

    pretrainings: list[PretrainingEstimate]
    finetunings: int
    speed: float

    def lines(self) -> list[str]:
        """The estimate as text."""
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
            f"fine-tuning          {self.finetunings:,} trainings; their time is not included",
        ]

    def _time(self, flop: float) -> str:
        return describe_duration(flop / self.speed)


def estimate_pretrainings(pretrainings: Sequence[Pretraining], bert: Pretraining) -> list[PretrainingEstimate]:
    """The cost of each; ``bert`` is the one whose parameters or operations others match."""
    bert_run = bert.sketch()
    bert_flop = estimate_run(bert.name, bert_run).flop if any(each.match == "flop" for each in pretrainings) else 0.0
    found = []
    for each in pretrainings:
        run = each.sketch()
        if each.match == "parameters":
            run = match_parameters(run, bert_run)
        estimate = estimate_run(each.name, run)
        if each.match == "flop":
            steps = max(1, round(estimate.steps * bert_flop / estimate.flop))
            estimate = estimate_run(each.name, replace(run, steps=steps))
        found.append(estimate)
    return found


def estimate_run(name: str, run: PretrainRun, *, share: float = 1.0) -> PretrainingEstimate:
    """The cost of one run, or of the first ``share`` of its steps; its data need not exist."""
    assert run.steps is not None
    model = sketch_model(run)
    steps = round(share * run.steps)
    short = steps if run.long_seq_length is None else min(steps, int(run.first_long))
    phases = zip((short, steps - short), run.batch_shapes, strict=False)
    flop = sum(count * rows * count_flops(model, _artificial_row(run, length)) for count, (rows, length) in phases)
    return PretrainingEstimate(
        name=name,
        parameters=sum(each.numel() for each in model.parameters()),
        steps=steps,
        flop=float(flop),
    )


def measure_speed() -> float:
    """FLOP/s that training is expected to reach here."""
    device = default_device()
    return expected_speed(device, choose_precision(device))


def _artificial_row(run: PretrainRun, length: int) -> Batch:
    """A batch of one row of ``length`` tokens, with as many labels as a real one has."""
    zeros = torch.zeros(1, length, dtype=torch.long)
    labels_by_objective = {
        "mlm": torch.where(torch.arange(length) < round(run.task.masking.rate * length), zeros, IGNORE),
        "clm": torch.where(torch.arange(length) < length - 1, zeros, IGNORE),
        "bilm": zeros[:, :, None].expand(-1, -1, 2),
        "nsp": torch.zeros(1, dtype=torch.long),
    }
    labels = {name: labels_by_objective[name] for name in run.task.objectives}
    return Batch(
        input_ids=zeros, segment_ids=zeros, attention_mask=torch.ones(1, length, dtype=torch.bool), labels=labels
    )
