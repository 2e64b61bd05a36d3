"""Weights of classes by name, and texts longer than the model reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.task_types import TextClassificationTask
from bertkit.user_tables.guess import guess

REVIEWS = TextClassificationTask(name="reviews", metric="accuracy", labels=("bad", "good", "odd"), max_length=13)


def test_balanced_weights_are_those_of_scikit_learn(tmp_path: Path) -> None:
    labels = ["bad"] * 20 + ["good"] * 7 + ["odd"] * 3
    table = "\n".join(["text,label", *(f"film {row},{label}" for row, label in enumerate(labels))])
    (tmp_path / "t.csv").write_text(table)
    found = guess(tmp_path / "t.csv", dev=tmp_path / "t.csv").task
    assert isinstance(found, TextClassificationTask)
    task = found.weighted("balanced")
    expected = compute_class_weight("balanced", classes=np.array(task.labels), y=labels)
    assert list(task.class_weights.values()) == pytest.approx(expected.tolist())
    assert found.weighted("balanced", limit=27).class_weights == pytest.approx({"bad": 27 / 40, "good": 27 / 14})


def test_weights_may_be_a_mapping() -> None:
    assert REVIEWS.weighted({"good": 2.0}) == REVIEWS.weighted("good=2")
    with pytest.raises(BertkitError, match=r"class_weights\.good is 0"):
        REVIEWS.weighted({"good": 0.0})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("god=2", r'no class "god" to weigh. reviews knows: bad, good, odd. Did you mean "good"\?'),
        ("good=0", "class_weights.good is 0.0; it must be above 0 and at most 1,000,000,000"),
        ("good=-1", "class_weights.good is -1"),
        ("good=inf", "class_weights.good is inf"),
        ("good=nan", "class_weights.good is nan"),
        ("good", 'class weights "good": expected "balanced" or NAME=NUMBER,NAME=NUMBER'),
        ("good=much", 'class weights "good=much": expected "balanced"'),
    ],
)
def test_wrong_weights_are_refused(weights: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        REVIEWS.weighted(weights)
    assert caught.value.exit_code == WRONG_USAGE


def test_the_names_of_weights_may_be_the_numbers_and_truth_values_of_a_table_in_memory() -> None:
    numbers = replace(REVIEWS, labels=("0", "1", "2.5"))
    assert numbers.weighted({0: 1, np.int64(1): 5, 2.5: 3}) == numbers.weighted({"0": 1, "1": 5, "2.5": 3})
    assert replace(REVIEWS, labels=("false", "true")).weighted({True: 5}).class_weights == {"true": 5}
