"""Training in several processes."""

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
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import PretrainResult, pretrain
from bertkit.quick_start import workers
from bertkit.quick_start.workers import count_processes, finetune_all, pretrain_together
from bertkit.report.progress import Progress
from bertkit.storage.subprocess_worker import count_cores
from bertkit.task_types.pretraining import PretrainingTask
from bertkit.task_types.user_tables import guess
from bertkit.text.wordpiece import train

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]


@pytest.fixture
def run(tmp_path: Path) -> PretrainRun:
    draw = random.Random(7)
    texts = [" ".join(draw.choices(WORDS, k=9)).capitalize() + "." for _ in range(99)]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = train(texts, vocab_size=67)
    prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0.3)
    encoder = size("1/12/2", vocab_size=tokenizer.vocab_size, max_positions=37, intermediate_size=13, dropout=0.0)
    return PretrainRun(
        data=tmp_path / "data",
        output=tmp_path / "run",
        encoder=replace(encoder, attention_dropout=0.0),
        task=PretrainingTask(objectives=("mlm",)),
        steps=3,
        seq_length=29,
        batch_size=6,
        precision="float32",
    )


def test_the_number_of_processes_divides_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= count_processes() <= count_cores()
    for cores, processes in {1: 1, 2: 2, 3: 2, 4: 4, 7: 4, 64: 4}.items():
        monkeypatch.setattr(workers, "count_cores", lambda cores=cores: cores)
        assert count_processes() == processes


def test_two_processes_train_the_model_of_one(run: PretrainRun) -> None:
    together = pretrain_together(run, 2, "quiet")
    alone = pretrain(replace(run, output=run.output.with_name("alone")), Progress("quiet"))
    assert isinstance(together, PretrainResult)
    assert (together.folder, together.steps) == (run.output, 3)
    assert together.heldout["mlm"] == pytest.approx(alone.heldout["mlm"], rel=1e-5)


def test_fine_tunings_are_returned_in_their_order(run: PretrainRun, tmp_path: Path) -> None:
    pretrain(run, Progress("quiet"))
    rows = [f"{first} {second},{first < second}" for first in WORDS for second in WORDS]
    (tmp_path / "table.csv").write_text("\n".join(["text,label", *rows]))
    task = guess(tmp_path / "table.csv", max_length=37).task
    runs = [
        FinetuneRun(task=task, model=run.output, output=tmp_path / f"tuned-{seed}", first_seed=seed, epochs=1)
        for seed in (5, 3, 4)
    ]
    results = finetune_all(runs, 2, "three runs", Progress("quiet"))
    assert [each.best.seed for each in results] == [5, 3, 4]
    assert [each.folder for each in results] == [each.output for each in runs]
    assert ModelFolder.open(tmp_path / "tuned-3").metadata["seed"] == 3


def test_the_end_of_a_process_is_an_error_at_once(run: PretrainRun, capfd: pytest.CaptureFixture[str]) -> None:
    """Both processes fail: the data is missing."""
    with pytest.raises(BertkitError, match=r"a process of the quickstart ended with exit code 1"):
        pretrain_together(replace(run, data=run.data / "missing"), 2, "quiet")
    assert "missing" in capfd.readouterr().err
    assert "RANK" not in os.environ
