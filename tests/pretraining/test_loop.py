from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.machine.interrupts import Interrupted
from bertkit.pretraining import loop
from bertkit.pretraining.heldout import evaluate_heldout
from bertkit.pretraining.loop import is_snapshot
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain
from bertkit.pretraining.saving import save_state
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics


def test_snapshots_of_the_model_are_kept(run: PretrainRun) -> None:
    pretrain(replace(run, snapshots=3, evaluate_every=4), Progress("quiet"))
    folders = sorted((run.output / "models").iterdir())
    assert [folder.name for folder in folders] == ["step-00000004", "step-00000007"]
    cards = [json.loads((folder / "bertkit.json").read_text()) for folder in folders]
    assert [bool(card["heldout"]) for card in cards] == [True, False]  # of this step, or none
    weights = [
        ModelFolder.open(folder).load_encoder().get_parameter("embeddings.word.weight")
        for folder in (*folders, run.output)
    ]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize(("total", "snapshots"), [(10, 1), (10, 3), (99, 7), (3, 7)])
def test_snapshots_are_evenly_spaced(total: int, snapshots: int) -> None:
    steps = [step for step in range(1, total + 1) if is_snapshot(step - 1, step, total, snapshots)]
    assert len(steps) == min(total, snapshots)
    assert steps[-1] == total
    gaps = [after - before for before, after in pairwise([0, *steps])]
    assert max(gaps) - min(gaps) <= 1


def test_steps_are_logged_evaluated_and_saved_at_their_intervals(run: PretrainRun) -> None:
    pretrain(replace(run, log_every=3, evaluate_every=4, save_every=5), Progress("quiet"))
    records = read_metrics(run.output / "metrics.jsonl")
    assert [each["step"] for each in records if each["kind"] == "train"] == [3, 6, 9, 10]
    assert [each["step"] for each in records if each["kind"] == "heldout"] == [4, 8, 10]
    saved = [folder.name for folder in store.checkpoints(run.output / "checkpoints")]
    assert sorted(saved) == ["step-00000005", "step-00000010"]


def test_work_between_two_phases_that_takes_the_time_of_the_last_one_leaves_it_one_step(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_slowly(*arguments: Any) -> int:
        time.sleep(2.0)
        return save_state(*arguments)

    monkeypatch.setattr(loop, "save_state", save_slowly)
    timed = replace(run, steps=None, minutes=2.0 / 60, long_share=0.999999, save_every=1, evaluate_every=99)
    result = pretrain(timed, Progress("quiet"))
    records = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert [(each["step"], each["seq_length"]) for each in records] == [(1, 13), (2, 41)]
    assert result.steps == 2
    assert "mlm" in result.heldout


def test_an_interrupt_saves_the_step_and_names_the_resume_command(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGINT)
        return evaluate_heldout(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "evaluate_heldout", interrupt)
    run = replace(run, output=run.output.with_name("a run"))
    message = f"stopped after step 5, saved. Resume: bertkit pretrain --resume '{run.output}'"
    with pytest.raises(Interrupted, match=message):
        pretrain(run, Progress("quiet"))
    (saved,) = store.checkpoints(run.output / "checkpoints")
    assert saved.name == "step-00000005"
