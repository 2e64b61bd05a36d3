from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from bertkit.checkpoint import training_state as store
from bertkit.config.settings import apply
from bertkit.config.settings_file import read_settings
from bertkit.pretraining import phases
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.job import build_job
from bertkit.pretraining.phases import build_phases
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.schedule import ScheduleConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pretraining.md"


def test_the_last_steps_use_long_rows(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    records = read_metrics(run.output / "metrics.jsonl")
    tokens = [record["tokens"] for record in records if record["kind"] == "train"]
    assert max(tokens[:7]) <= 7 * 13 < min(tokens[7:])
    assert [record["step"] for record in records if record["kind"] == "heldout"] == [5, 10]


def rates(run: PretrainRun) -> list[float]:
    records = read_metrics(run.output / "metrics.jsonl")
    return [record["lr"] for record in records if record["kind"] == "train"]


def test_one_schedule_spans_both_phases(run: PretrainRun) -> None:
    run = replace(run, schedule=ScheduleConfig(warmup=0.2), long_lr=3e-4, optimizer=OptimizerConfig(lr=1e-4))
    pretrain(run, Progress("quiet"))
    factors = [0.0, 0.5, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert rates(run) == pytest.approx([1e-4 * each for each in factors[:7]] + [3e-4 * each for each in factors[7:]])


def test_long_rows_change_both_rates_by_one_factor(run: PretrainRun) -> None:
    muon = OptimizerConfig(kind="muon", lr=1e-3, muon_lr=0.02)
    run = replace(run, long_lr=5e-4, optimizer=muon)
    data = PretrainingData.open(run)
    short, long = (phase.plan.optimizer for phase in build_phases(run, data))
    assert (short.lr, short.muon_lr, long.lr, long.muon_lr) == pytest.approx((1e-3, 0.02, 5e-4, 0.01))
    _, long = (phase.plan.optimizer for phase in build_phases(replace(run, optimizer=OptimizerConfig(lr=0.0)), data))
    assert long.lr == 5e-4


def test_a_phase_that_restarts_has_its_own_schedule(run: PretrainRun) -> None:
    run = replace(
        run,
        long_phase="restart",
        long_lr=3e-4,
        long_warmup=0.4,
        long_batch_size=3,
        schedule=ScheduleConfig(warmup=0.2, decay="linear"),
        optimizer=OptimizerConfig(lr=1e-4, bias_correction=True),
        save_every=1,
    )
    pretrain(run, Progress("quiet"))
    long = [0.0, 1.0, 0.5]
    assert rates(run) == pytest.approx(
        [0.0, *(1e-4 * (7 - step) / 6 for step in range(1, 7)), *(3e-4 * f for f in long)]
    )
    tokens = [record["tokens"] for record in read_metrics(run.output / "metrics.jsonl") if record["kind"] == "train"]
    assert 3 * 20 < min(tokens[7:]) <= max(tokens[7:]) <= 3 * 41
    assert run.tokens_per_step == pytest.approx(0.7 * 7 * 13 + 0.3 * 3 * 41)
    groups, _ = store.load(run.output / "checkpoints" / "step-00000010")
    assert {float(value) for name, value in groups["optimizer"].items() if name.endswith("/step")} == {3.0}


def test_the_documented_recipe_for_large_batches_has_two_phases(run: PretrainRun, tmp_path: Path) -> None:
    (recipe,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "recipe.toml").write_text(recipe)
    run = apply(run, read_settings(tmp_path / "recipe.toml"))
    short, long = build_phases(run, PretrainingData.open(run))
    assert (short.until, long.until - long.first) == (7038, 1563)
    assert [phase.plan.batch_size for phase in (short, long)] == [65_536, 32_768]
    assert [phase.source.seq_length for phase in (short, long)] == [128, 512]
    assert [phase.plan.optimizer.lr for phase in (short, long)] == [6e-3, 4e-3]
    assert [phase.plan.schedule.warmup for phase in (short, long)] == [0.2843, 0.128]
    assert long.restarts
    assert run.optimizer.kind == "lamb"


def test_a_run_without_long_rows_has_one_phase(run: PretrainRun) -> None:
    (phase,) = build_phases(replace(run, long_seq_length=None), PretrainingData.open(run))
    assert (phase.first, phase.until, phase.source.seq_length) == (0, 10, 13)
    assert phase.heldout is not None
    assert phase.heldout.seq_length == 13


@pytest.mark.parametrize("long_phase", ["continue", "restart"])
def test_the_optimizer_restarts_before_the_first_step_of_the_phase_only(
    run: PretrainRun, long_phase: Literal["continue", "restart"], monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted: list[int] = []
    job = build_job(replace(run, long_phase=long_phase))
    monkeypatch.setattr(phases, "restart", lambda *arguments: restarted.append(job.state.step))
    for step in (6, 7, 8):
        job.state.step = step
        job.phases[1].begin(job.state)
    assert restarted == ([7] if long_phase == "restart" else [])
