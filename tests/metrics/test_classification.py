"""Scores of classes by hand, against their definitions, and where they are undefined."""

from __future__ import annotations

import random

import pytest

from bertkit.errors import BertkitError
from bertkit.metrics.classification import accuracy, binary_f1, confusion, macro_f1, matthews, score_classes

GOLD = ["a", "a", "a", "b", "b", "c", "c"]
PREDICTED = ["a", "a", "b", "b", "a", "c", "b"]


def test_accuracy_is_the_share_of_correct_predictions() -> None:
    assert accuracy(GOLD, PREDICTED) == pytest.approx(4 / 7)


def test_binary_f1_by_hand() -> None:
    # a: 3 gold, 3 predicted, 2 of them correct
    assert binary_f1(GOLD, PREDICTED, positive="a") == pytest.approx(2 / 3)


def test_binary_f1_of_a_class_that_never_occurs_is_zero() -> None:
    assert binary_f1(["a", "a"], ["a", "a"], positive="b") == 0.0


def test_macro_f1_weights_classes_equally() -> None:
    f1 = [binary_f1(GOLD, PREDICTED, positive=name) for name in "abc"]
    assert macro_f1(GOLD, PREDICTED) == pytest.approx(sum(f1) / 3)


def test_matthews_of_two_classes_by_its_formula() -> None:
    gold = ["1"] * 6 + ["0"] * 7
    predicted = ["1", "1", "1", "1", "0", "0", "1", "0", "0", "0", "0", "0", "0"]
    tp, fn, fp, tn = 4, 2, 1, 6
    expected = (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5
    assert matthews(gold, predicted) == pytest.approx(expected)


def test_matthews_of_opposite_predictions_is_minus_one() -> None:
    assert matthews(["0", "1", "1"], ["1", "0", "0"]) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("gold", "predicted"), [(["a", "b", "a"], ["a", "a", "a"]), (["a", "a"], ["a", "b"]), (["a", "a"], ["a", "a"])]
)
def test_matthews_of_a_constant_is_zero(gold: list[str], predicted: list[str]) -> None:
    assert matthews(gold, predicted) == 0.0


def test_confusion_has_gold_classes_in_rows() -> None:
    assert confusion(GOLD, PREDICTED, classes=["a", "b", "c"]) == [[2, 1, 0], [1, 1, 0], [0, 1, 1]]


def test_confusion_keeps_a_class_that_never_occurs() -> None:
    assert confusion(["a"], ["a"], classes=["b", "a"]) == [[0, 0], [0, 1]]


@pytest.mark.parametrize("score", [accuracy, macro_f1, matthews])
def test_no_examples_are_an_error(score: object) -> None:
    assert callable(score)
    with pytest.raises(BertkitError, match="nothing to score"):
        score([], [])


def count(gold: list[str], predicted: list[str], name: str) -> tuple[int, int, int]:
    """(gold, predicted, correct) examples of a class."""
    correct = sum(pair == (name, name) for pair in zip(gold, predicted, strict=True))
    return gold.count(name), predicted.count(name), correct


@pytest.mark.parametrize("classes", [2, 5])
def test_scores_are_those_of_their_definitions(classes: int) -> None:
    generator = random.Random(classes)
    names = "vwxyz"[:classes]
    gold, predicted = generator.choices(names, k=137), generator.choices(names[:-1] + "v", k=137)
    counts = [count(gold, predicted, name) for name in names]
    size, correct = 137, sum(each[2] for each in counts)
    covariance = size * correct - sum(sought * found for sought, found, _ in counts)
    gold_variance, predicted_variance = [size**2 - sum(each[side] ** 2 for each in counts) for side in (0, 1)]
    assert accuracy(gold, predicted) == pytest.approx(correct / size)
    assert macro_f1(gold, predicted) == pytest.approx(
        sum(2 * hits / (sought + found) for sought, found, hits in counts) / classes
    )
    assert matthews(gold, predicted) == pytest.approx(covariance / max(1, gold_variance * predicted_variance) ** 0.5)
    pairs = list(zip(gold, predicted, strict=True))
    assert confusion(gold, predicted, classes=names) == [[pairs.count((a, b)) for b in names] for a in names]


def test_class_scores_by_hand() -> None:
    scored = score_classes(GOLD, PREDICTED, classes=["c", "a", "b", "d"])
    assert [each.name for each in scored] == ["c", "a", "b", "d"]
    assert [each.precision for each in scored] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert [each.recall for each in scored] == pytest.approx([1 / 2, 2 / 3, 1 / 2, 0])
    assert [each.f1 for each in scored] == pytest.approx([2 / 3, 2 / 3, 2 / 5, 0])
    assert [each.support for each in scored] == [2, 3, 2, 0]
    assert all(type(each.support) is int for each in scored), "also where a class does not occur"


def test_a_class_per_example_does_not_warn() -> None:
    names = [f"class {number}" for number in range(99)]
    assert accuracy(names, names) == macro_f1(names, names) == matthews(names, names) == 1.0
    assert binary_f1(names, names, positive=names[7]) == 1.0
    assert all(each.f1 == 1.0 for each in score_classes(names, names, classes=names))
