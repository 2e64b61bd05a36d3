"""Numbers: their scale, bounds and scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.task_types.small_tables import here as here
from tests.task_types.small_tables import sentence, write_csv

from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.task_types import RegressionTask, TextClassificationTask, TextExample
from bertkit.task_types.class_weights import Weightable
from bertkit.task_types.text_task import Prediction
from bertkit.user_tables.guess import guess


def test_numbers_are_scaled_to_mean_0_and_standard_deviation_1(here: Path) -> None:
    rows = [(str(row), sentence(row), f"{1000 + 2.5 * row}") for row in range(40)]
    found = guess(write_csv(here / "prices.csv", rows, header="id,offer,score"))
    assert "label = score (a number from 1000 to 1097.5, 1049 on average)" in found.sentence
    assert found.task.labels == ()
    assert isinstance(found.task, RegressionTask)
    assert found.task.metric == "pearson"
    by_error, gold = replace(found.task, metric="mean_absolute_error"), [TextExample("1", "a", None, 3.0)]
    assert list(by_error.score(gold, [Prediction(3.0)])) == ["mean_absolute_error", "pearson", "spearman"]
    assert found.task.numbers.origin == pytest.approx(1048.75)
    output = {"value": np.array(48.75 / found.task.numbers.unit)}
    assert found.task.decode(TextExample("1", "a"), [], [output]).label == pytest.approx(1097.5)


@pytest.mark.parametrize(
    "numbers", [("1e99", "-1e99"), ("1e-99", "3e-99"), ("1e15", "1000000000000001"), ("0", "-0.5")]
)
def test_the_largest_and_the_smallest_numbers_are_learned_and_given_back(here: Path, numbers: tuple[str, str]) -> None:
    rows = [(str(row), sentence(row), numbers[row % 2]) for row in range(60)]
    task = guess(write_csv(here / "t.csv", rows, header="id,review,score"), kind="number").task
    assert isinstance(task, RegressionTask)
    learned = [task.encode_label(float(number))["number"] for number in numbers]
    assert sorted(learned) == pytest.approx([-1, 1])
    told = [task.decode(TextExample("1", "a"), [], [{"value": np.array(each)}]).label for each in learned]
    assert told == pytest.approx([float(number) for number in numbers], abs=0)
    assert task.score_answers("pearson", [float(each) for each in numbers], told) == pytest.approx(1)


def test_a_number_that_means_no_label_in_a_batch_is_learned_too() -> None:
    task = RegressionTask(name="temperature", metric="pearson")
    scaled = torch.tensor(task.encode_label(-100.0)["number"], dtype=torch.float32)
    assert scaled != IGNORE
    assert float(scaled) == pytest.approx(-100)
    assert task.encode_label(None)["number"] == IGNORE


REVIEWS = TextClassificationTask(name="reviews", metric="accuracy", labels=("bad", "good", "odd"), max_length=13)


def test_a_regression_has_no_classes_to_weigh() -> None:
    assert not isinstance(RegressionTask(name="stars", metric="pearson"), Weightable)


def test_the_prediction_is_the_mean_over_windows(tokenizer: Tokenizer) -> None:
    logits = [np.array([4.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.0, 5.0, 0.0])]
    prediction = REVIEWS.decode(TextExample("1", ""), [], [{"logits": each} for each in logits])
    assert prediction.label == "good"
    expected = torch.softmax(torch.tensor([4 / 3, 2.0, 0.0]), 0).tolist()
    assert list(prediction.scores.values()) == pytest.approx(expected)
    stars = RegressionTask(name="stars", metric="pearson")
    assert stars.decode(TextExample("1", ""), [], [{"value": np.array(x)} for x in (1.0, 4.0)]).label == 2.5
