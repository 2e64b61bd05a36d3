"""evaluate and compare from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit import api
from bertkit.errors import BertkitError


def test_the_scores_of_the_fine_tuning_are_found_again(workspace: Path, tmp_path: Path) -> None:
    evaluation = api.evaluate(workspace / "tuned", output=tmp_path, progress="quiet")
    recorded = json.loads((workspace / "tuned" / "results.json").read_text())
    best = max(recorded["seeds"], key=lambda seed: seed["scores"]["accuracy"])
    assert evaluation["accuracy"] == best["scores"]["accuracy"]


def test_another_task_needs_the_same_labels(workspace: Path) -> None:
    with pytest.raises(BertkitError, match=r"a model for .*reviews\.csv does not give the answers of squad:v1"):
        api.evaluate(workspace / "tuned", on="squad:v1", progress="quiet")


def test_a_model_is_as_good_as_itself(workspace: Path) -> None:
    comparison = api.compare(workspace / "tuned", workspace / "tuned", workspace / "reviews.csv", progress="quiet")
    assert comparison.scores["accuracy"].difference.value == 0
    assert comparison.scores["accuracy"].p == 1
    assert comparison.examples == 99
