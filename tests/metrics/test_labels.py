"""Scores of sets of labels by hand and against their definitions."""

from __future__ import annotations

import random

import pytest

from bertkit.errors import BertkitError
from bertkit.metrics.labels import macro_f1, micro_f1, score_labels, subset_accuracy


@pytest.mark.parametrize("names", ["a", "ab", "abcde"])
@pytest.mark.parametrize("seed", range(7))
def test_scores_are_those_of_their_definitions(names: str, seed: int) -> None:
    generator = random.Random(seed)
    gold, predicted = (
        [tuple(generator.sample(names, generator.randint(0, min(4, len(names))))) for _ in range(99)] for _ in range(2)
    )
    pairs = list(zip(gold, predicted, strict=True))
    in_gold = {name: sum(name in each for each in gold) for name in names}
    in_predicted = {name: sum(name in each for each in predicted) for name in names}
    in_both = {name: sum(name in first and name in second for first, second in pairs) for name in names}
    f1 = {name: 2 * in_both[name] / (in_gold[name] + in_predicted[name]) for name in names}
    total = sum(in_gold.values()) + sum(in_predicted.values())
    assert micro_f1(gold, predicted) == pytest.approx(2 * sum(in_both.values()) / total)
    assert macro_f1(gold, predicted) == pytest.approx(sum(f1.values()) / len(names))
    assert subset_accuracy(gold, predicted) == pytest.approx(sum(set(a) == set(b) for a, b in pairs) / 99)
    for score in score_labels(gold, predicted, labels=list(names)):
        assert score.precision == pytest.approx(in_both[score.name] / in_predicted[score.name])
        assert score.recall == pytest.approx(in_both[score.name] / in_gold[score.name])
        assert score.f1 == pytest.approx(f1[score.name])
        assert (score.support, type(score.support)) == (in_gold[score.name], int)


def test_scores_by_hand() -> None:
    gold, predicted = [("a", "b"), ("a",), ()], [("a",), ("a", "c"), ()]
    assert micro_f1(gold, predicted) == pytest.approx(2 * 2 / (3 + 3))
    assert macro_f1(gold, predicted) == pytest.approx((1 + 0 + 0) / 3)
    assert subset_accuracy(gold, predicted) == pytest.approx(1 / 3)


def test_labels_that_never_occur_score_zero() -> None:
    (score,) = score_labels([()], [()], labels=["a"])
    assert (score.precision, score.recall, score.f1, score.support) == (0.0, 0.0, 0.0, 0)


def test_f1_is_zero_where_no_label_occurs() -> None:
    assert (micro_f1([()], [()]), macro_f1([()], [()]), subset_accuracy([()], [()])) == (0.0, 0.0, 1.0)


def test_no_examples_are_an_error() -> None:
    with pytest.raises(BertkitError, match="there is nothing to score"):
        micro_f1([], [])
