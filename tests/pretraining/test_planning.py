from __future__ import annotations

from dataclasses import replace

import pytest

from bertkit.errors import BertkitError
from bertkit.pretraining import planning
from bertkit.pretraining.planning import PretrainPlan, plan_pretraining
from bertkit.pretraining.record import PretrainRun
from bertkit.report.progress import Progress


def test_the_plan_counts_both_phases(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.pretraining.planning._SECONDS_TO_MEASURE", 0.1)
    plan = plan_pretraining(run, Progress("quiet"))
    assert plan.tokens == 10 * 7 * 0.7 * 13 + 10 * 7 * 0.3 * 41


def test_the_time_of_a_slow_step_is_extrapolated_from_fewer_rows(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def measure(tried_run: PretrainRun, seconds: float) -> list[float]:
        tried.append((tried_run.batch_size, tried_run.long_batch_size))
        return [2 + 0.5 * tried_run.batch_size, 4 + 0.5 * tried_run.batch_size]

    monkeypatch.setattr(planning, "measure_phases", measure)
    monkeypatch.setattr(planning, "estimate_peak", lambda run: 0)
    monkeypatch.setattr(planning, "affordable_tokens", lambda run, seconds: run.tokens_per_step / 10)
    plan = plan_pretraining(replace(run, batch_size=700, long_batch_size=350), Progress("quiet"))
    assert tried == [(35, 18), (70, 35)]
    assert plan.seconds_per_step == pytest.approx(0.7 * (2 + 0.5 * 700) + 0.3 * (4 + 0.5 * 700))
    tried.clear()
    plan_pretraining(replace(run, batch_size=35, long_batch_size=7), Progress("quiet"))
    assert tried == [(10, 2), (20, 4)], "an objective that compares rows needs two in every phase"


@pytest.mark.parametrize(
    ("free", "line"),
    [
        (3 << 30, "memory      2.00 GiB at the peak, in bfloat16; 3.00 GiB are free"),
        (1 << 30, "memory      2.00 GiB at the peak, in bfloat16, and only 1.00 GiB are free: lower micro_batch_size"),
        (None, "memory      2.00 GiB at the peak, in bfloat16"),
    ],
)
def test_a_plan_states_whether_the_memory_suffices(free: int | None, line: str) -> None:
    plan = PretrainPlan(
        parameters={"blocks": 99},
        precision="bfloat16",
        peak_memory=2 << 30,
        available_memory=free,
        steps=13,
        seconds_per_step=1.0,
        seconds=13.0,
        tokens=7,
        corpus_tokens=7,
    )
    assert plan.lines()[1].startswith(line)
    assert (free is None) == plan.lines()[1].endswith("bfloat16")


def test_each_phase_has_the_steps_that_fit_into_its_share_of_the_minutes(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "measure_phases", lambda run, seconds: [0.5, 2.0])
    monkeypatch.setattr(planning, "estimate_peak", lambda run: 0)
    plan = plan_pretraining(replace(run, steps=None, minutes=2), Progress("quiet"))
    assert plan.steps == 168 + 18
    assert plan.seconds == pytest.approx(120)
    assert plan.tokens == 168 * 7 * 13 + 18 * 7 * 41


def test_a_plan_needs_steps_or_minutes(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="give either --steps or --minutes"):
        plan_pretraining(replace(run, steps=None), Progress("quiet"))
