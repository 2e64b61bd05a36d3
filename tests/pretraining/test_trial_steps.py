from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bertkit.pretraining import trial_steps
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.trial_steps import measure_phases, measure_step, train_briefly, with_enough_steps
from bertkit.training.fit import Step, fit


def test_a_run_without_steps_gets_enough_for_each_phase(run: PretrainRun) -> None:
    long = with_enough_steps(replace(run, steps=None))
    assert long.steps == 1_000_000
    assert replace(long, steps=10, long_share=run.long_share) == run


def test_a_share_of_less_than_one_step_is_timed(run: PretrainRun) -> None:
    short, long = measure_phases(replace(run, long_share=1e-9), 0.0)
    assert short > 0
    assert long > 0


def test_the_time_of_a_step_is_the_mean_over_phases(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """70 % of the steps take 2 s, 30 % take 4 s; the first step of each phase is not timed."""
    yielded: list[float] = []

    def fit_in_seconds(state: Any, source: Any, plan: Any, **options: Any) -> Iterator[Step]:
        for place, step in enumerate(fit(state, source, plan, **options)):
            yielded.append(99.0 if place == 0 else {13: 2.0, 41: 4.0}[source.seq_length])
            yield replace(step, seconds=yielded[-1])

    monkeypatch.setattr(trial_steps, "fit", fit_in_seconds)
    assert measure_step(run, 12.0) == pytest.approx(0.7 * 2 + 0.3 * 4)
    assert yielded == [99.0, 2.0, 2.0, 2.0, 99.0, 4.0, 4.0]
    assert measure_phases(run, 12.0) == [2.0, 4.0]
    assert measure_step(replace(run, long_seq_length=None), 1.0) == 2.0


def test_nothing_is_written(run: PretrainRun) -> None:
    before = sorted(run.output.parent.rglob("*"))
    measure_step(run, 0.0)
    train_briefly(with_enough_steps(run), 2)
    assert sorted(run.output.parent.rglob("*")) == before


def test_a_brief_training_has_steps_and_an_evaluation_in_each_phase(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[int, int]] = []
    measured: list[int] = []

    def log_steps(state: Any, source: Any, plan: Any, **options: Any) -> Iterator[Step]:
        for step in fit(state, source, plan, **options):
            steps.append((source.seq_length, step.step))
            yield step

    monkeypatch.setattr(trial_steps, "fit", log_steps)
    monkeypatch.setattr(trial_steps, "measure_losses", lambda job, phase: measured.append(phase.source.seq_length))
    train_briefly(with_enough_steps(run), 2)
    assert steps == [(13, 1), (13, 2), (41, 500_001), (41, 500_002)]
    assert measured == [13, 41]
