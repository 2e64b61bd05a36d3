"""Scores of sets of labels, held to scikit-learn's."""

from __future__ import annotations

import random

import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from bertkit.errors import BertkitError
from bertkit.metrics.labels import macro_f1, micro_f1, score_labels, subset_accuracy

NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("seed", range(7))
def test_scores_are_those_of_scikit_learn(seed: int) -> None:
    draw = random.Random(seed)
    gold, told = ([tuple(draw.sample(NAMES, draw.randint(0, 4))) for _ in range(99)] for _ in range(2))
    binarize = MultiLabelBinarizer(classes=NAMES).fit([NAMES])
    matrices = binarize.transform(gold), binarize.transform(told)
    assert micro_f1(gold, told) == pytest.approx(f1_score(*matrices, average="micro"))
    assert macro_f1(gold, told) == pytest.approx(f1_score(*matrices, average="macro"))
    assert subset_accuracy(gold, told) == pytest.approx(accuracy_score(*matrices))
    found = [(each.precision, each.recall, each.f1, each.support) for each in score_labels(gold, told, labels=NAMES)]
    assert found == [pytest.approx(each) for each in zip(*precision_recall_fscore_support(*matrices), strict=True)]


def test_by_hand() -> None:
    gold, told = [("a", "b"), ("a",), ()], [("a",), ("a", "c"), ()]
    assert micro_f1(gold, told) == pytest.approx(2 * 2 / (3 + 3))
    assert macro_f1(gold, told) == pytest.approx((1 + 0 + 0) / 3)
    assert subset_accuracy(gold, told) == pytest.approx(1 / 3)


def test_where_no_label_occurs_f1_is_zero() -> None:
    assert (micro_f1([()], [()]), macro_f1([()], [()]), subset_accuracy([()], [()])) == (0.0, 0.0, 1.0)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(BertkitError, match="there is nothing to score"):
        micro_f1([], [])
