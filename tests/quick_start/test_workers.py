"""Fine-tunings in several processes."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.prepare import prepare
from bertkit.encoders.bert import size
from bertkit.errors import BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.machine.processor import count_cores
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain
from bertkit.pretraining.task import PretrainingTask
from bertkit.quick_start.workers import count_processes, finetune_all
from bertkit.report.progress import Progress
from bertkit.text.wordpiece import train
from bertkit.user_tables.guess import guess

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A network that was pre-trained for three steps."""
    draw = random.Random(7)
    texts = [" ".join(draw.choices(WORDS, k=9)).capitalize() + "." for _ in range(99)]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = train(texts, vocab_size=67)
    prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0.3)
    encoder = size("1/12/2", vocab_size=tokenizer.vocab_size, max_positions=37, intermediate_size=13, dropout=0.0)
    run = PretrainRun(
        data=tmp_path / "data",
        output=tmp_path / "run",
        encoder=replace(encoder, attention_dropout=0.0),
        task=PretrainingTask(objectives=("mlm",)),
        steps=3,
        seq_length=29,
        batch_size=6,
        precision="float32",
    )
    return pretrain(run, Progress("quiet")).folder


def end_at_once(run: FinetuneRun) -> FinetuneResult:
    os._exit(7)


def plan(model: Path, folder: Path) -> list[FinetuneRun]:
    rows = [f"{first} {second},{first < second}" for first in WORDS for second in WORDS]
    (folder / "table.csv").write_text("\n".join(["text,label", *rows]))
    task = guess(folder / "table.csv", max_length=37).task
    return [
        FinetuneRun(task=task, model=model, output=folder / f"tuned-{seed}", first_seed=seed, epochs=1)
        for seed in (5, 3, 4)
    ]


def test_every_core_has_a_process() -> None:
    assert count_processes() == count_cores()


def test_fine_tunings_are_returned_in_their_order(model: Path, tmp_path: Path) -> None:
    runs = plan(model, tmp_path)
    results = finetune_all(runs, 2, "three runs", Progress("quiet"))
    assert [each.best.seed for each in results] == [5, 3, 4]
    assert [each.folder for each in results] == [each.output for each in runs]
    assert ModelFolder.open(tmp_path / "tuned-3").metadata["seed"] == 3


def test_the_error_of_a_fine_tuning_is_raised_in_one_line(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = [replace(each, model=model.with_name("missing")) for each in plan(model, tmp_path)]
    with pytest.raises(BertkitError, match=r"no model at .*missing"):
        finetune_all(runs, 2, "three runs", Progress("quiet"))
    assert not capfd.readouterr().err


def test_the_end_of_a_process_is_an_error_at_once(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.quick_start.workers._finetune", end_at_once)
    with pytest.raises(BertkitError, match=r"a process of the quickstart ended with exit code 7"):
        finetune_all(plan(model, tmp_path), 2, "three runs", Progress("quiet"))
