"""The thresholds that score best on dev."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score
from tests.task_types.small_questions import TASKS
from tests.task_types.small_questions import name as name

from bertkit.task_files.squad_files import GoldAnswer
from bertkit.task_types import (
    AnswerSpan,
    MultiLabelTask,
    Prediction,
    SpanExample,
    SpanPrediction,
    TextExample,
)
from bertkit.task_types.thresholds import best_f1_threshold, best_gain_threshold
from bertkit.user_tables.guess import guess


@pytest.fixture
def films(tmp_path: Path) -> MultiLabelTask:
    rows = [{"text": f"film number {row}", "tags": CELLS[row % 7]} for row in range(49)]
    table = tmp_path / "films.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = guess(table, dev=table, label="tags", kind="labels").task
    assert isinstance(found, MultiLabelTask)
    return found


def guessed(odds: float, text: str = "mill") -> SpanPrediction:
    return SpanPrediction(text, (AnswerSpan(text, 0, len(text), 0.5),), odds)


def test_the_threshold_is_set_where_f1_is_highest() -> None:
    task = TASKS["squad:v2"]
    found = [("mill", -3.0), ("old mill", -2.0), ("", -1.0), ("mill", -0.6), ("mill", -0.5), ("", 0.5), ("", 2.0)]
    examples = [
        SpanExample(str(n), "?", "old mill", (GoldAnswer(text, 0),) if text else (), impossible=not text)
        for n, (text, _) in enumerate(found)
    ]
    predictions = [guessed(odds) for _, odds in found]
    calibrated, decided = task.calibrate(examples, predictions)
    assert calibrated.threshold == pytest.approx(0.0), "between -0.5 and 0.5"
    assert [each.text for each in decided] == ["mill"] * 5 + [""] * 2
    best = calibrated.score(examples, decided)["f1"]
    for threshold in (-9.0, -2.5, -1.5, -0.75, 1.0, 9.0):
        other = [replace(task, threshold=threshold).decide(each) for each in predictions]
        assert task.score(examples, other)["f1"] < best


def test_answering_nothing_can_be_best() -> None:
    examples = [SpanExample(str(n), "?", "old mill", (), impossible=True) for n in range(3)]
    calibrated, decided = TASKS["squad:v2"].calibrate(examples, [guessed(odds) for odds in (-7.0, -7.0, 3.0)])
    assert calibrated.threshold < -7
    assert [each.text for each in decided] == ["", "", ""]


CELLS = ["dull;long", "long", "", "bright", "dull; bright ;long", "[]", '["long", "bright"]']


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_is_better_on_dev(seed: int, films: MultiLabelTask) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.random((37, 3)).round(1)  # with ties
    gold = scores + generator.normal(0, 0.4, (37, 3)) > 0.6
    examples = [
        TextExample("", "", None, tuple(name for name, yes in zip(films.labels, row, strict=True) if yes))
        for row in gold
    ]
    predictions = [Prediction((), dict(zip(films.labels, row.tolist(), strict=True))) for row in scores]
    tuned, relabelled = films.calibrate(examples, predictions)
    for column, label in enumerate(films.labels):
        predicted = [isinstance(each.label, tuple) and label in each.label for each in relabelled]
        assert predicted == (scores[:, column] >= tuned.thresholds[label]).tolist()
        others = [f1_score(gold[:, column], scores[:, column] >= cut) for cut in np.linspace(0, 1, 101)]
        assert f1_score(gold[:, column], predicted) == pytest.approx(max(others))


def test_of_equally_good_thresholds_the_nearest_to_one_half_is_taken(films: MultiLabelTask) -> None:
    examples = [TextExample("", "", None, ("dull",)), TextExample("", "", None, ())]
    predictions = [Prediction((), {"bright": 0.9, "dull": share, "long": 0.9}) for share in (0.75, 0.125)]
    tuned, relabelled = films.calibrate(examples, predictions)
    assert tuned.thresholds == {"dull": 0.4375}, "a label that is not in dev keeps its threshold"
    assert [each.label for each in relabelled] == [("bright", "dull", "long"), ("bright", "long")]


def test_a_label_whose_probability_is_always_zero_has_a_threshold() -> None:
    assert best_f1_threshold(np.array([True, False]), np.zeros(2)) == 0.0


def test_probabilities_that_differ_by_rounding_are_not_separated(films: MultiLabelTask) -> None:
    """With another backend, or in another batch, they would be on the other side."""
    gold, probabilities = np.array([True, False, False]), np.array([0.4 + 1e-8, 0.4, 0.1])
    assert best_f1_threshold(gold, probabilities) == pytest.approx(0.25)
    assert best_gain_threshold(np.array([0.4, 0.4 + 1e-8, 2.0]), np.array([1.0, -1.0, -1.0])) < 0.4
