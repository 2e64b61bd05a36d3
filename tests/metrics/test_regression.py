"""Scores of numbers by hand, against their definitions, and where they are undefined."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest
from scipy import stats

from bertkit.metrics.regression import mean_absolute_error, pearson, spearman


def test_pearson_of_a_straight_line_is_one() -> None:
    assert pearson([0.0, 1.0, 2.5, 7.0], [1.0, 3.0, 6.0, 15.0]) == pytest.approx(1.0)


def test_pearson_by_hand() -> None:
    # deviations (-1, 0, 1) and (-1, 1, 0): 1 / 2
    assert pearson([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]) == pytest.approx(0.5)


def test_spearman_depends_on_the_order_only() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0], [0.1, 10.0, 11.0, 900.0]) == pytest.approx(1.0)


def test_spearman_gives_ties_their_mean_rank() -> None:
    # ranks (1.5, 1.5, 3) and (1, 2, 3)
    assert spearman([2.0, 2.0, 5.0], [1.0, 2.0, 3.0]) == pytest.approx(0.75**0.5)


def test_mean_absolute_error_by_hand() -> None:
    assert mean_absolute_error([1.0, 2.0, 3.0], [1.5, 2.0, 1.0]) == pytest.approx(2.5 / 3)
    assert mean_absolute_error([4.0], [4.0]) == 0.0


@pytest.mark.parametrize("score", [pearson, spearman])
def test_a_correlation_with_a_constant_is_undefined(score: object) -> None:
    assert callable(score)
    assert math.isnan(score([1.0, 2.0, 3.0], [2.5, 2.5, 2.5]))
    assert math.isnan(score([4.0, 4.0], [1.0, 2.0]))
    assert math.isnan(score([4.0], [1.0]))


def test_almost_constant_predictions_do_not_warn() -> None:
    assert -1.0 <= pearson([1.0, 2.0, 3.0], [2.5, 2.5, 2.5 + 1e-15]) <= 1.0


def mean_ranks(numbers: Sequence[float]) -> list[float]:
    """The mean of the first and the last place of a number in the sorted list."""
    ordered = sorted(numbers)
    return [(2 * ordered.index(number) + ordered.count(number) + 1) / 2 for number in numbers]


def test_correlations_are_those_of_their_definitions() -> None:
    generator = random.Random(7)
    gold = [generator.choice([0.0, 1.5, 2.0, 4.75]) for _ in range(99)]
    predicted = [round(number + generator.gauss(0, 2), 1) for number in gold]
    assert pearson(gold, predicted) == pytest.approx(stats.pearsonr(gold, predicted).statistic)
    assert spearman(gold, predicted) == pytest.approx(statistics.correlation(mean_ranks(gold), mean_ranks(predicted)))
