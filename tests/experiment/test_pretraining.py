"""Two phases: rows of two lengths under one schedule, each held to held-out rows of its own length."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from bertkit.checkpoint.folder import load_encoder
from bertkit.data.prepare import prepare
from bertkit.encoders.bert import size
from bertkit.errors import BertkitError
from bertkit.experiment.planning import plan_pretraining
from bertkit.experiment.pretraining import is_snapshot, measure_step, pretrain
from bertkit.report.progress import Progress
from bertkit.run import PretrainRun, read_metrics
from bertkit.text import wordpiece
from bertkit.training.distributed import World
from bertkit.training.optimizer import OptimizerConfig

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


def test_the_plan_counts_both_phases(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.experiment.planning._SECONDS_TO_MEASURE", 0.1)
    plan = plan_pretraining(run, Progress("quiet"))
    assert plan.tokens == 10 * 7 * 0.7 * 13 + 10 * 7 * 0.3 * 41
    assert replace(run, long_seq_length=None).tokens_per_step == 7 * 13


def test_models_are_kept_on_the_way(run: PretrainRun) -> None:
    pretrain(replace(run, snapshots=3), Progress("quiet"))
    folders = sorted((run.output / "models").iterdir())
    assert [folder.name for folder in folders] == ["step-00000004", "step-00000007"]
    weights = [load_encoder(folder).embeddings.word.weight for folder in (*folders, run.output)]
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
        measure_step(run, 0.1, World(size=2))


def test_lamb_is_not_divided_among_processes(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="LAMB needs their norms whole"):
        measure_step(replace(run, shard=True, optimizer=OptimizerConfig(kind="lamb")), 0.1)
