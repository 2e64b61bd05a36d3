"""Two phases: rows of two lengths, under one schedule or two, each held to held-out rows of its own length."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from tests.disturbed import outcome

from bertkit import config
from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.prepare import prepare
from bertkit.encoders.bert import BertConfig, size
from bertkit.errors import BertkitError
from bertkit.pretraining import planning
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.loop import is_snapshot
from bertkit.pretraining.phases import build_phases
from bertkit.pretraining.planning import PretrainPlan, plan_pretraining
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain, resume
from bertkit.pretraining.trial_steps import measure_step
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics
from bertkit.task_types.pretraining import PretrainingTask
from bertkit.text import wordpiece
from bertkit.training.distributed import ProcessGroup
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.schedule import ScheduleConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pretraining.md"
SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]


@pytest.fixture
def run(tmp_path: Path) -> PretrainRun:
    texts = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(99)]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = wordpiece.train(texts, vocab_size=99)
    prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0.3)
    return PretrainRun(
        data=tmp_path / "data",
        output=tmp_path / "run",
        encoder=size("1/14/2", vocab_size=tokenizer.vocab_size, max_positions=41),
        steps=10,
        seq_length=13,
        long_seq_length=41,
        long_share=0.3,
        batch_size=7,
        evaluate_every=5,
        log_every=1,
    )


def test_the_last_steps_have_the_long_rows(run: PretrainRun) -> None:
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


def test_a_phase_that_restarts_has_a_schedule_of_its_own(run: PretrainRun) -> None:
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


@pytest.mark.parametrize("long_phase", ["continue", "restart"])
def test_a_resume_in_either_phase_or_between_them_comes_to_the_same(
    run: PretrainRun, tmp_path: Path, long_phase: Literal["continue", "restart"]
) -> None:
    lamb = OptimizerConfig(kind="lamb", lr=1e-2, bias_correction=True)
    run = replace(run, long_phase=long_phase, long_lr=1e-3, long_batch_size=3, optimizer=lamb)
    pretrain(replace(run, save_every=1, keep_checkpoints=10), Progress("quiet"))
    for step in (5, 7, 8):
        broken = tmp_path / f"broken-{step}"
        shutil.copytree(run.output, broken, ignore=shutil.ignore_patterns("model"))
        for later in range(step + 1, 11):
            shutil.rmtree(broken / "checkpoints" / f"step-{later:08}")
        resume(broken, Progress("quiet"))
        assert outcome(broken) == outcome(run.output)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"long_seq_length": None, "long_lr": 1e-3}, "long_lr needs long_seq_length"),
        ({"long_seq_length": None, "long_phase": "restart"}, "long_phase needs long_seq_length"),
        ({"long_warmup": 0.1}, "long_warmup needs long_phase=restart"),
        ({"long_batch_size": 0}, "long_batch_size is 0; it must be 1 or more"),
        ({"long_lr": -1e-3}, "long_lr is -0.001; it must be 0 or more"),
    ],
)
def test_settings_of_long_rows_without_a_sense_are_refused(
    run: PretrainRun, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(BertkitError, match=said):
        replace(run, **changes)


def test_the_recipe_for_large_batches_has_the_phases_that_it_names(run: PretrainRun, tmp_path: Path) -> None:
    (recipe,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "recipe.toml").write_text(recipe)
    run = config.apply(run, config.read_settings(tmp_path / "recipe.toml"))
    short, long = build_phases(run, PretrainingData.open(run.data))
    assert (short.until, long.until - long.first) == (7038, 1563)
    assert [phase.plan.batch_size for phase in (short, long)] == [65_536, 32_768]
    assert [phase.source.seq_length for phase in (short, long)] == [128, 512]
    assert [phase.plan.optimizer.lr for phase in (short, long)] == [6e-3, 4e-3]
    assert [phase.plan.schedule.warmup for phase in (short, long)] == [0.2843, 0.128]
    assert long.restarts
    assert run.optimizer.kind == "lamb"


def test_the_plan_counts_both_phases(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.pretraining.planning._SECONDS_TO_MEASURE", 0.1)
    plan = plan_pretraining(run, Progress("quiet"))
    assert plan.tokens == 10 * 7 * 0.7 * 13 + 10 * 7 * 0.3 * 41
    assert replace(run, long_seq_length=None).tokens_per_step == 7 * 13


def test_a_step_that_takes_too_long_is_planned_with_fewer_rows(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def measure(tried_run: PretrainRun, seconds: float) -> float:
        tried.append((tried_run.batch_size, tried_run.long_batch_size))
        return 2 + 0.5 * tried_run.batch_size

    monkeypatch.setattr(planning, "measure_step", measure)
    monkeypatch.setattr(planning, "estimate_peak", lambda run: 0)
    monkeypatch.setattr(planning, "affordable_tokens", lambda run, seconds: run.tokens_per_step / 10)
    plan = plan_pretraining(replace(run, batch_size=700, long_batch_size=350), Progress("quiet"))
    assert tried == [(35, 18), (70, 35)]
    assert plan.seconds_per_step == pytest.approx(2 + 0.5 * 700)


@pytest.mark.parametrize(
    ("free", "said"),
    [
        (3 << 30, "memory      2.00 GiB at the peak, in bfloat16; 3.00 GiB are free"),
        (1 << 30, "memory      2.00 GiB at the peak, in bfloat16, and only 1.00 GiB are free: lower micro_batch_size"),
        (None, "memory      2.00 GiB at the peak, in bfloat16"),
    ],
)
def test_a_plan_says_whether_the_memory_suffices(free: int | None, said: str) -> None:
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
    assert plan.lines()[1].startswith(said)
    assert (free is None) == plan.lines()[1].endswith("bfloat16")


def bert_of(run: PretrainRun) -> BertConfig:
    assert isinstance(run.encoder, BertConfig)
    return run.encoder


def test_left_to_right_without_next_sentences(run: PretrainRun, capsys: pytest.CaptureFixture[str]) -> None:
    task = PretrainingTask(objectives=("clm",))
    run = replace(run, encoder=replace(bert_of(run), causal=True), task=task)
    result = pretrain(run, Progress("plain"))
    assert {"clm", "clm_accuracy", "clm_perplexity"} == set(result.heldout)
    assert "masked              none" in capsys.readouterr().err
    records = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert all(each["loss/clm"] > 0 and each["flops_per_second"] > 0 for each in records)
    assert ModelFolder.open(run.output).load_encoder().config == run.encoder


@pytest.mark.parametrize(
    ("causal", "objectives", "message"),
    [
        (True, ("mlm", "nsp"), "task.objectives has mlm, which needs an encoder in which every token attends to all"),
        (False, ("clm",), "task.objectives has clm, which needs a causal encoder; this one is an encoder in which"),
        (True, ("clm", "nsp"), "task.objectives has nsp, which needs an encoder in which every token attends to all"),
    ],
)
def test_objectives_that_do_not_suit_the_encoder_are_refused(
    run: PretrainRun, causal: bool, objectives: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        replace(
            run,
            encoder=replace(bert_of(run), causal=causal),
            task=PretrainingTask(objectives=objectives),
        )
    assert caught.value.exit_code == 2


def test_models_are_kept_on_the_way(run: PretrainRun) -> None:
    pretrain(replace(run, snapshots=3), Progress("quiet"))
    folders = sorted((run.output / "models").iterdir())
    assert [folder.name for folder in folders] == ["step-00000004", "step-00000007"]
    weights = [
        ModelFolder.open(folder).load_encoder().get_parameter("embeddings.word.weight")
        for folder in (*folders, run.output)
    ]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize(("total", "snapshots"), [(10, 1), (10, 3), (99, 7), (3, 7)])
def test_snapshots_stand_at_even_distances(total: int, snapshots: int) -> None:
    steps = [step for step in range(1, total + 1) if is_snapshot(step, total, snapshots)]
    assert len(steps) == min(total, snapshots)
    assert steps[-1] == total
    gaps = [after - before for before, after in pairwise([0, *steps])]
    assert max(gaps) - min(gaps) <= 1


def test_processes_that_cannot_have_as_many_rows_each_are_refused(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="batch_size is 7; 2 processes need a multiple"):
        measure_step(run, 0.1, ProcessGroup(size=2))


def test_lamb_is_not_divided_among_processes(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="LAMB needs the norms of whole ones"):
        measure_step(replace(run, shard=True, optimizer=OptimizerConfig(kind="lamb")), 0.1)
