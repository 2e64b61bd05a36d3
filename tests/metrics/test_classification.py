from __future__ import annotations

import random

import pytest
from sklearn import metrics

from bertkit.errors import BertkitError
from bertkit.metrics.classification import accuracy, binary_f1, confusion, macro_f1, matthews, score_classes

GOLD = ["a", "a", "a", "b", "b", "c", "c"]
PREDICTED = ["a", "a", "b", "b", "a", "c", "b"]


def test_accuracy_is_the_share_of_right_answers() -> None:
    assert accuracy(GOLD, PREDICTED) == pytest.approx(4 / 7)


def test_binary_f1_by_hand() -> None:
    # a: 2 found of 3 sought, 2 right of 3 found
    assert binary_f1(GOLD, PREDICTED, positive="a") == pytest.approx(2 / 3)


def test_binary_f1_of_a_class_that_is_nowhere_is_zero() -> None:
    assert binary_f1(["a", "a"], ["a", "a"], positive="b") == 0.0


def test_macro_f1_weighs_classes_alike() -> None:
    f1 = [binary_f1(GOLD, PREDICTED, positive=name) for name in "abc"]
    assert macro_f1(GOLD, PREDICTED) == pytest.approx(sum(f1) / 3)


def test_matthews_of_two_classes_by_its_formula() -> None:
    gold = ["1"] * 6 + ["0"] * 7
    predicted = ["1", "1", "1", "1", "0", "0", "1", "0", "0", "0", "0", "0", "0"]
    tp, fn, fp, tn = 4, 2, 1, 6
    expected = (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5
    assert matthews(gold, predicted) == pytest.approx(expected)


def test_matthews_of_opposite_answers_is_minus_one() -> None:
    assert matthews(["0", "1", "1"], ["1", "0", "0"]) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("gold", "predicted"), [(["a", "b", "a"], ["a", "a", "a"]), (["a", "a"], ["a", "b"]), (["a", "a"], ["a", "a"])]
)
def test_matthews_of_a_constant_is_zero(gold: list[str], predicted: list[str]) -> None:
    assert matthews(gold, predicted) == 0.0


def test_confusion_has_gold_in_rows() -> None:
    assert confusion(GOLD, PREDICTED, classes=["a", "b", "c"]) == [[2, 1, 0], [1, 1, 0], [0, 1, 1]]


def test_confusion_keeps_a_class_that_never_occurs() -> None:
    assert confusion(["a"], ["a"], classes=["b", "a"]) == [[0, 0], [0, 1]]


@pytest.mark.parametrize("score", [accuracy, macro_f1, matthews])
def test_nothing_to_score_is_an_error(score: object) -> None:
    assert callable(score)
    with pytest.raises(BertkitError, match="nothing to score"):
        score([], [])


@pytest.mark.parametrize("classes", [2, 5])
def test_scores_are_those_of_scikit_learn(classes: int) -> None:
    draw = random.Random(classes)
    names = "vwxyz"[:classes]
    gold, predicted = draw.choices(names, k=137), draw.choices(names[:-1] + "v", k=137)
    assert accuracy(gold, predicted) == pytest.approx(metrics.accuracy_score(gold, predicted))
    assert macro_f1(gold, predicted) == pytest.approx(metrics.f1_score(gold, predicted, average="macro"))
    assert matthews(gold, predicted) == pytest.approx(metrics.matthews_corrcoef(gold, predicted))
    assert confusion(gold, predicted, classes=names) == metrics.confusion_matrix(gold, predicted).tolist()


def test_classes_are_scored_as_by_sklearn() -> None:
    classes = ["a", "b", "c", "d"]
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        GOLD, PREDICTED, labels=classes, zero_division=0
    )
    scored = score_classes(GOLD, PREDICTED, classes=classes)
    assert [each.name for each in scored] == classes
    assert [each.precision for each in scored] == pytest.approx(precision.tolist())
    assert [each.recall for each in scored] == pytest.approx(recall.tolist())
    assert [each.f1 for each in scored] == pytest.approx(f1.tolist())
    assert [each.support for each in scored] == support.tolist()
