"""Some steps of a run with a model that is thrown away: to time a step, and to measure memory.

The shards are not compared with their checksums: that takes two seconds per GB, and no result depends on it.
"""

from __future__ import annotations

import dataclasses

from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.heldout import measure_losses
from bertkit.pretraining.job import build_job
from bertkit.pretraining.record import PretrainRun
from bertkit.training.fit import fit

_ENOUGH_STEPS = 1_000_000
"""The steps of a run whose number is not known yet: more than any trial makes in each phase."""

FEWEST_ROWS = 4
"""The rows of the larger of two trial steps at the least. The smaller has half of them, and two are what an objective
needs that compares rows."""


def with_enough_steps(run: PretrainRun) -> PretrainRun:
    """The same run, long enough for trial steps in every phase; all of them train all weights.

    Long rows have half of the steps: of a very small ``long_share`` even a million would leave none.
    """
    return dataclasses.replace(run, steps=_ENOUGH_STEPS, minutes=None, long_share=0.5, head_share=0.0)


def fewer_rows(count: int, share: float) -> int:
    """A share of ``count`` rows, and at least two of them, where there are two (see ``FEWEST_ROWS``)."""
    return min(count, max(2, round(count * share)))


def measure_step(run: PretrainRun, seconds: float) -> float:
    """Seconds per training step, the mean over the steps of all phases; at least ``seconds`` are spent on measuring."""
    measured = measure_phases(run, seconds)
    return sum(share * each for share, each in zip(run.phase_shares, measured, strict=True))


def measure_phases(run: PretrainRun, seconds: float) -> list[float]:
    """Seconds per training step of each phase; at least ``seconds`` are spent on measuring."""
    run = with_enough_steps(run)
    job = build_job(run, data=PretrainingData.open(run, verify=False), initial_weights=False)
    means: list[float] = []
    for phase in job.phases:
        job.state.step = phase.first_step
        steps = fit(job.state, phase.source, phase.plan, first_step=phase.first_step)
        next(steps)  # the first step is not timed: it allocates memory and compiles
        times: list[float] = []
        while not times or sum(times) < seconds / len(job.phases):
            times.append(next(steps).seconds)
        means.append(sum(times) / len(times))
    return means


def train_briefly(run: PretrainRun, steps: int) -> None:
    """Some steps and an evaluation in every phase: all that takes memory in a run."""
    job = build_job(run, data=PretrainingData.open(run, verify=False), initial_weights=False)
    for phase in job.phases:
        job.state.step = phase.first_step
        for step in fit(job.state, phase.source, phase.plan, first_step=phase.first_step):
            if step.step == phase.first_step + steps:
                break
        measure_losses(job, phase)
