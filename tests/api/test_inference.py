"""fill and predict from Python."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import bertkit


def test_every_mask_is_filled(workspace: Path) -> None:
    first, second = bertkit.fill(workspace / "run", "River [MASK] early [MASK].", top_k=3)
    for fillings in (first, second):
        probabilities = [each.probability for each in fillings]
        assert len(probabilities) == 3
        assert probabilities == sorted(probabilities, reverse=True)


def test_fill_computes_in_the_precision_that_is_asked_for(workspace: Path) -> None:
    exact, rounded = (
        bertkit.fill(workspace / "run", "River [MASK].", precision=precision)[0][0].probability
        for precision in ("float32", "bfloat16")
    )
    assert exact != rounded and abs(exact - rounded) < 0.01


def test_predictions_are_written_and_counted(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    assert bertkit.predict(workspace / "tuned", workspace / "reviews.csv", output=output, progress="quiet") == 99
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    with (workspace / "reviews.csv").open(newline="") as file:
        review = next(csv.DictReader(file))["review"]
    assert rows[0]["label"] == bertkit.load(workspace / "tuned").classify(review).label


def test_an_ensemble_predicts_the_mean(workspace: Path, tmp_path: Path) -> None:
    tuned, table = workspace / "tuned", workspace / "reviews.csv"
    bertkit.predict(tuned, table, output=tmp_path / "one.jsonl", progress="quiet")
    bertkit.predict(tuned, table, output=tmp_path / "two.jsonl", ensemble=[tuned], progress="quiet")
    labels = [
        [json.loads(line)["label"] for line in (tmp_path / name).read_text().splitlines()]
        for name in ("one.jsonl", "two.jsonl")
    ]
    assert labels[0] == labels[1]
