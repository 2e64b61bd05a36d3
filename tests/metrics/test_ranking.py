from __future__ import annotations

import math

import pytest

from bertkit.metrics.ranking import roc_auc


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    assert roc_auc([1, 1, 0, 0], [0.9, 0.4, 0.5, 0.1]) == pytest.approx(3 / 4)
    assert roc_auc([1, 0], [0.5, 0.5]) == pytest.approx(0.5)


def test_it_is_undefined_with_one_class() -> None:
    assert math.isnan(roc_auc([1, 1], [0.9, 0.4]))


def test_the_larger_gold_number_is_positive_and_graded_numbers_have_no_area() -> None:
    assert roc_auc([0.2, 0.8, 0.2, 0.8], [0.1, 0.3, 0.2, 0.4]) == 1.0
    assert math.isnan(roc_auc([0.0, 2.5, 5.0], [0.1, 0.2, 0.3]))
