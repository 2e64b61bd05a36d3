from __future__ import annotations

import pytest
from scipy.stats import binomtest

from bertkit.metrics.comparison import mcnemar


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 7), (13, 7), (99, 37), (37, 37), (2000, 2200)])
def test_the_exact_test_is_a_fair_coin(first: int, second: int) -> None:
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)
    assert mcnemar(second, first) == mcnemar(first, second)
