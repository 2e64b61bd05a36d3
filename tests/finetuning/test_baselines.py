from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit import api
from bertkit.finetuning.baselines import Baseline, describe_baselines, verdict
from bertkit.finetuning.results import FinetuneResult, SeedResult
from bertkit.finetuning.run import list_warnings

BASELINES = [
    Baseline(name="most frequent answer", scores={"accuracy": 0.5}, seconds=0.0),
    Baseline(name="bag of words", scores={"accuracy": 0.75}, seconds=1.0),
]


@pytest.mark.usefixtures("no_pictures")
def test_a_fine_tuning_is_compared_with_trivial_methods(
    model: Path, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = api.finetune(table, model=model, output=tmp_path / "run", epochs=1, progress="plain")
    assert [each.name for each in result.baselines] == ["most frequent answer", "bag of words"]
    assert all(0 <= each.scores["accuracy"] <= 1 for each in result.baselines)
    assert "to beat: most frequent answer" in capsys.readouterr().err
    record = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [each["name"] for each in record["baselines"]] == ["most frequent answer", "bag of words"]
    assert result.verdict().startswith("accuracy: ")


@pytest.mark.usefixtures("no_pictures")
def test_baselines_can_be_left_out(model: Path, table: Path, tmp_path: Path) -> None:
    result = api.finetune(table, model=model, output=tmp_path / "run", epochs=1, no_baseline=True, progress="quiet")
    assert (result.baselines, result.verdict()) == ([], "")


def test_the_verdict_names_the_best_baseline() -> None:
    assert "bag of words 0.7500, this model 0.8000: the model is worth 0.0500 more" in verdict(
        "accuracy", 0.8, BASELINES
    )
    worse = verdict("accuracy", 0.6, BASELINES)
    assert "bag of words 0.7500, this model 0.6000: the model is not worth its cost yet" in worse
    assert "has learned nothing" in verdict("accuracy", 0.4, BASELINES[:1])


def test_the_scores_to_beat_are_one_sentence() -> None:
    assert describe_baselines("accuracy", BASELINES) == "to beat: most frequent answer 0.5000, bag of words 0.7500"


def seed_result(best_epoch: int) -> SeedResult:
    return SeedResult(seed=0, epochs=[], best_epoch=best_epoch, scores={}, seconds=1.0, examples_per_second=1.0)


@pytest.mark.parametrize(("best", "num_dev", "expected"), [(3, 1000, 1), (2, 1000, 0), (3, 49, 2), (2, 49, 1)])
def test_doubts_about_a_score(best: int, num_dev: int, expected: int) -> None:
    seed = seed_result(best)
    result = FinetuneResult(folder=Path("run"), metric="accuracy", seeds=[seed], mean=0.5, sd=None, best=seed)
    found = list_warnings(result, epochs=3, num_dev=num_dev)
    assert len(found) == expected
    assert ("--epochs 6" in " ".join(found)) == (best == 3)
    assert ("to within 14 points" in " ".join(found)) == (num_dev == 49)
