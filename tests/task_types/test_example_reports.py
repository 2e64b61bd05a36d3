"""What an evaluation shows of one example."""

from __future__ import annotations

import pytest

from bertkit.task_types import Prediction, TextExample
from bertkit.task_types.example_reports import ExampleReport, report_prediction, spell_value


def report(label: str | float, prediction: Prediction, score: float = 0.0, metric: str = "accuracy") -> ExampleReport:
    example = TextExample("7", "the old", "mill", label)
    return report_prediction(example, prediction, {"id": "7", "num_truncated": 3}, metric, lambda: score)


def test_a_right_class_has_no_error() -> None:
    found = report("sad", Prediction("sad", {"sad": 0.75, "glad": 0.25}))
    assert (found.error, found.confidence, found.num_truncated) == (0.0, 0.75, 3)
    assert (found.text, found.words, found.gold, found.answer) == ("the old | mill", 3, "sad", "sad")


def test_the_error_of_a_wrong_class_is_its_probability() -> None:
    assert report("glad", Prediction("sad", {"sad": 0.75, "glad": 0.25})).error == 0.75


def test_the_error_of_a_number_is_its_distance() -> None:
    found = report(2.5, Prediction(4.0))
    assert (found.error, found.confidence, found.gold, found.answer) == (1.5, None, "2.5", "4")


def test_without_a_probability_the_error_is_what_the_score_lacks() -> None:
    assert report("glad", Prediction("sad"), score=0.25).error == 0.75
    assert report("glad", Prediction("sad"), score=0.25, metric="mean_absolute_error").error == 0.25


@pytest.mark.parametrize(("value", "text"), [(1.5, "1.5"), (("a", "b"), "a b"), ([1.0, "x"], "1 x"), (None, "None")])
def test_values_are_spelled(value: object, text: str) -> None:
    assert spell_value(value) == text
