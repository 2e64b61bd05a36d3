"""McNemar's exact test against the binomial distribution."""

from __future__ import annotations

from math import comb

import pytest

from bertkit.metrics.comparison import mcnemar


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 7), (13, 7), (99, 37), (37, 37), (2000, 2200)])
def test_p_value_is_that_of_a_fair_coin(first: int, second: int) -> None:
    tosses = first + second
    one_side = sum(comb(tosses, heads) for heads in range(min(first, second) + 1))
    expected = min(1.0, 2 * one_side / 2**tosses)
    assert mcnemar(first, second) == pytest.approx(expected)
    assert mcnemar(second, first) == mcnemar(first, second)
