"""Numbers: their scale, bounds and scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.task_types.small_tables import fails, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.contracts import Tokenizer
from bertkit.errors import BAD_DATA
from bertkit.task_types import RegressionTask, TextClassificationTask, TextExample
from bertkit.task_types.class_weights import Weightable
from bertkit.task_types.user_tables import guess


def test_numbers_are_scaled_to_mean_0_and_standard_deviation_1(here: Path) -> None:
    rows = [(str(row), sentence(row), f"{1000 + 2.5 * row}") for row in range(40)]
    found = guess(write_csv(here / "prices.csv", rows, header="id,offer,score"))
    assert "label = score (a number from 1000 to 1097.5, 1.05e+03 on average)" in found.sentence
    assert found.task.labels == ()
    assert isinstance(found.task, RegressionTask)
    assert found.task.metric == "pearson"
    assert found.task.numbers.origin == pytest.approx(1048.75)
    output = {"value": np.array(48.75 / found.task.numbers.unit)}
    assert found.task.decode(TextExample("1", "a"), [], [output]).label == pytest.approx(1097.5)


def test_a_word_among_numbers_is_named(here: Path) -> None:
    rows = [(str(row), sentence(row), "many" if row == 4 else str(row / 2)) for row in range(60)]
    path = write_csv(here / "r.csv", rows, header="id,review,score")
    fails('r.csv, line 6: "many" is not a number', BAD_DATA, path, kind="number")


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
