"""Parameters, memory, tokens and time of a pre-training, measured before it is started (``pretrain --plan``)."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from bertkit.data.mixture import Mixture
from bertkit.machine.device import default_device
from bertkit.machine.memory import available_memory
from bertkit.machine.precision import choose_precision
from bertkit.pretraining.memory_probe import estimate_peak
from bertkit.pretraining.model_size import affordable_tokens, count_parameters
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import check_settings
from bertkit.pretraining.trial_steps import FEWEST_ROWS, fewer_rows, measure_phases
from bertkit.report.progress import Progress, describe_duration
from bertkit.results import Result

_SECONDS_TO_MEASURE = 5.0
"""Steps that take longer are timed with fewer rows."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PretrainPlan(Result):
    """Sizes and times of a pre-training.

    ``peak_memory`` and ``available_memory`` are bytes of the device that computes; the latter is None where unknown.
    ``tokens`` are those that the steps read if every row is full; where the corpus has fewer it is read repeatedly.
    """

    parameters: dict[str, int]
    precision: str
    peak_memory: int
    available_memory: int | None
    steps: int
    seconds_per_step: float
    seconds: float
    tokens: int
    corpus_tokens: int

    def lines(self) -> list[str]:
        """The plan as text for the terminal."""
        parts = ", ".join(f"{name} {count:,}" for name, count in self.parameters.items())
        passes = self.tokens / self.corpus_tokens
        return [
            f"parameters  {sum(self.parameters.values()):,} ({parts})",
            f"memory      {self.peak_memory / 2**30:.2f} GiB at the peak, in {self.precision}{self._free_memory()}",
            f"tokens      at most {self.tokens:,}, {passes:.2f} times the {self.corpus_tokens:,} of the corpus",
            f"time        {describe_duration(self.seconds)}: {self.steps:,} steps of {self.seconds_per_step:.2f} s",
        ]

    def _free_memory(self) -> str:
        if self.available_memory is None:
            return ""
        free = f"{self.available_memory / 2**30:.2f} GiB"
        if self.peak_memory <= self.available_memory:
            return f"; {free} are free"
        return f", and only {free} are free: lower micro_batch_size, or set gradient_checkpointing=true"


def plan_pretraining(run: PretrainRun, progress: Progress) -> PretrainPlan:
    """Measure some steps of ``run`` with a model that is thrown away; nothing is written to disk."""
    check_settings(run)
    run = dataclasses.replace(run, precision=run.precision or choose_precision(default_device()))
    progress.say("measuring memory")
    peak_memory = estimate_peak(run)
    progress.say(f"measuring steps for {_SECONDS_TO_MEASURE:.0f} s")
    step_seconds = _measure_seconds(run)
    phase_steps = _count_steps(run, step_seconds)
    steps = max(1, round(sum(phase_steps)))
    seconds = sum(count * each for count, each in zip(phase_steps, step_seconds, strict=True))
    return PretrainPlan(
        parameters=count_parameters(run),
        precision=run.chosen_precision,
        peak_memory=peak_memory,
        available_memory=available_memory(default_device()),
        steps=steps,
        seconds_per_step=seconds / steps,
        seconds=seconds,
        tokens=round(sum(map(operator.mul, phase_steps, run.tokens_per_phase))),
        corpus_tokens=Mixture.open(run.corpora, verify=False).num_tokens,
    )


def _count_steps(run: PretrainRun, step_seconds: Sequence[float]) -> list[float]:
    """The steps of each phase: its share of the steps, or those that fit into its share of the minutes."""
    parts = [run.length * share for share in run.phase_shares]
    if not run.is_timed:
        return parts
    return [part / seconds for part, seconds in zip(parts, step_seconds, strict=True)]


def _measure_seconds(run: PretrainRun) -> list[float]:
    """Seconds per step of each phase.

    A step that takes too long is extrapolated from two batches, one with as many rows as can be afforded and one with
    half of them: the time of a step is linear in its rows.
    """
    batches = [rows for rows, _ in run.batch_shapes]
    batch, share = max(batches), affordable_tokens(run, _SECONDS_TO_MEASURE) / run.tokens_per_step
    large = max(ceil(FEWEST_ROWS * batch / min(batches)), int(batch * share))
    if large >= batch:
        return measure_phases(run, _SECONDS_TO_MEASURE)
    small = large // 2
    with_small, with_large = (measure_phases(_with_rows(run, rows / batch), 0) for rows in (small, large))
    growth = (batch - large) / (large - small)
    return [more + (more - less) * growth for less, more in zip(with_small, with_large, strict=True)]


def _with_rows(run: PretrainRun, share: float) -> PretrainRun:
    long_rows = None if run.long_batch_size is None else fewer_rows(run.long_batch_size, share)
    return dataclasses.replace(run, batch_size=fewer_rows(run.batch_size, share), long_batch_size=long_rows)
