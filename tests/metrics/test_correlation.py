from __future__ import annotations

import random

import pytest
from scipy import stats

from bertkit.metrics.correlation import pearson, spearman


def test_pearson_of_a_straight_line_is_one() -> None:
    assert pearson([0.0, 1.0, 2.5, 7.0], [1.0, 3.0, 6.0, 15.0]) == pytest.approx(1.0)


def test_pearson_by_hand() -> None:
    # deviations (-1, 0, 1) and (-1, 1, 0): 1 / 2
    assert pearson([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]) == pytest.approx(0.5)


def test_spearman_sees_only_the_order() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0], [0.1, 10.0, 11.0, 900.0]) == pytest.approx(1.0)


def test_spearman_gives_ties_their_mean_rank() -> None:
    # ranks (1.5, 1.5, 3) and (1, 2, 3)
    assert spearman([2.0, 2.0, 5.0], [1.0, 2.0, 3.0]) == pytest.approx(0.75**0.5)


@pytest.mark.parametrize("score", [pearson, spearman])
def test_a_constant_side_scores_zero(score: object) -> None:
    assert callable(score)
    assert score([1.0, 2.0, 3.0], [2.5, 2.5, 2.5]) == 0.0
    assert score([4.0, 4.0], [1.0, 2.0]) == 0.0
    assert score([4.0], [1.0]) == 0.0


def test_almost_constant_predictions_do_not_warn() -> None:
    assert -1.0 <= pearson([1.0, 2.0, 3.0], [2.5, 2.5, 2.5 + 1e-15]) <= 1.0


def test_correlations_are_those_of_scipy() -> None:
    draw = random.Random(7)
    gold = [draw.choice([0.0, 1.5, 2.0, 4.75]) for _ in range(99)]
    predicted = [round(number + draw.gauss(0, 2), 1) for number in gold]
    assert pearson(gold, predicted) == pytest.approx(stats.pearsonr(gold, predicted).statistic)
    assert spearman(gold, predicted) == pytest.approx(stats.spearmanr(gold, predicted).statistic)
