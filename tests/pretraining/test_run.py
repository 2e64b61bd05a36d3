from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from tests.interruptible_run import outcome

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.encoders.bert import BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.pretraining import run as pretraining
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain, read_begun, resume
from bertkit.report.progress import Progress
from bertkit.runs import FORMAT, read_metrics, read_run
from bertkit.storage.atomic import write_json
from bertkit.task_types.pretraining import PretrainingTask
from bertkit.training.optimizer import OptimizerConfig


@pytest.mark.parametrize(("long_phase", "kind"), [("continue", "lamb"), ("restart", "lamb"), ("restart", "muon")])
def test_a_resume_in_either_phase_or_between_them_is_bit_exact(
    run: PretrainRun, tmp_path: Path, long_phase: Literal["continue", "restart"], kind: Literal["lamb", "muon"]
) -> None:
    optimizer = OptimizerConfig(kind=kind, lr=1e-2, bias_correction=True)
    run = replace(run, long_phase=long_phase, long_lr=1e-3, long_batch_size=3, optimizer=optimizer)
    pretrain(replace(run, save_every=1, keep_checkpoints=10), Progress("quiet"))
    for step in (5, 7, 8):
        broken = tmp_path / f"broken-{step}"
        shutil.copytree(run.output, broken, ignore=shutil.ignore_patterns("model"))
        for later in range(step + 1, 11):
            shutil.rmtree(broken / "checkpoints" / f"step-{later:08}")
        resume(broken, Progress("quiet"))
        assert outcome(broken) == outcome(run.output)


def test_left_to_right_pretraining_without_next_sentences(run: PretrainRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(run.encoder, BertConfig)
    task = PretrainingTask(objectives=("clm",))
    run = replace(run, encoder=replace(run.encoder, causal=True), task=task)
    result = pretrain(run, Progress("plain"))
    assert {"clm", "clm_accuracy", "clm_perplexity"} == set(result.heldout)
    assert "masked              none" in capsys.readouterr().err
    records = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert all(each["loss/clm"] > 0 and each["flops_per_second"] > 0 for each in records)
    assert ModelFolder.open(run.output).load_encoder().config == run.encoder


def test_a_finished_run_is_recorded(run: PretrainRun) -> None:
    result = pretrain(run, Progress("quiet"), origins={"seed": "--seed"})
    record = read_run(run.output)
    assert (record["kind"], record["ended"], record["heldout"]) == ("pretrain", "done", result.heldout)
    assert record["origins"] == {"seed": "--seed", "precision": "measured"}
    assert {"data", "data_report", "corpus", "environment", "command"} <= set(record)
    assert (result.folder, result.steps) == (run.output, 10)
    assert (run.output / "training.png").stat().st_size > 0


def test_minutes_are_converted_to_steps(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "measure_step", lambda *arguments: 0.5)
    result = pretrain(replace(run, steps=None, minutes=0.1), Progress("quiet"))
    assert result.steps == 11
    assert read_run(run.output)["origins"]["steps"] == "measured"


@pytest.mark.parametrize("given", [{"steps": None}, {"minutes": 1.0}])
def test_either_steps_or_minutes_must_be_given(run: PretrainRun, given: dict[str, float | None]) -> None:
    with pytest.raises(BertkitError, match="give either --steps or --minutes"):
        pretrain(replace(run, **given), Progress("quiet"))  # type: ignore[arg-type]


def test_a_folder_that_holds_a_run_is_refused(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    with pytest.raises(BertkitError, match=r"run holds a run already. Give --resume .*run, or another -o folder"):
        pretrain(run, Progress("quiet"))


def test_a_run_without_a_checkpoint_is_resumed_from_step_0(
    run: PretrainRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrain(run, Progress("quiet"))
    broken = tmp_path / "broken"
    shutil.copytree(run.output, broken, ignore=shutil.ignore_patterns("model", "checkpoints"))
    resume(broken, Progress("plain"))
    assert "broken has no checkpoint yet; starting again from step 0" in capsys.readouterr().err
    assert outcome(broken) == outcome(run.output)


def test_only_pretraining_runs_are_resumed(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {"format": FORMAT, "kind": "finetune", "run": {}})
    with pytest.raises(BertkitError, match="is not a pre-training run; only those are resumed") as caught:
        read_begun(tmp_path)
    assert caught.value.exit_code == WRONG_USAGE
