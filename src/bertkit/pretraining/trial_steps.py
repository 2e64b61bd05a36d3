"""Some steps of a run with a model that is thrown away: to time a step, and to measure memory."""

from __future__ import annotations

import dataclasses

from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.heldout import measure_losses
from bertkit.pretraining.job import build_job
from bertkit.pretraining.record import PretrainRun
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup
from bertkit.training.fit import fit

_ENOUGH_STEPS = 1_000_000
"""The steps of a run whose number is not known yet: more than any trial makes in each phase."""


def with_enough_steps(run: PretrainRun) -> PretrainRun:
    """The same run, long enough for trial steps in every phase."""
    return dataclasses.replace(run, steps=_ENOUGH_STEPS)


def measure_step(
    run: PretrainRun, seconds: float, group: ProcessGroup = SINGLE_PROCESS, data: PretrainingData | None = None
) -> float:
    """Seconds per training step, the mean over all phases; at least ``seconds`` are spent on measuring.

    ``data`` is the corpus of the run, if it is open already.
    """
    job = build_job(with_enough_steps(run), group, data)
    mean = 0.0
    for phase in job.phases:
        job.state.step = phase.first
        steps = fit(job.state, phase.source, phase.plan, first_step=phase.first, group=group)
        next(steps)  # the first step is not timed: it allocates memory and compiles
        times: list[float] = []
        while not times or sum(times) < seconds / len(job.phases):
            times.append(group.all_reduce_max(next(steps).seconds))
        mean += sum(times) / len(times) * (phase.until - phase.first) / job.total_steps
    return mean


def train_briefly(run: PretrainRun, steps: int) -> None:
    """Some steps and an evaluation in every phase: all that takes memory in a run."""
    job = build_job(run)
    for phase in job.phases:
        job.state.step = phase.first
        for step in fit(job.state, phase.source, phase.plan, first_step=phase.first):
            if step.step == phase.first + steps:
                break
        measure_losses(job, phase)
