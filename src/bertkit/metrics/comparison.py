"""Whether one of two systems is right more often than the other on the same examples."""

from __future__ import annotations

from scipy.stats import binomtest


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p value of McNemar's exact test (1947): the sign test on the examples that one system gets right.

    ``only_first`` and ``only_second`` count the examples that only that system gets right. 1.0 when there are none.
    """
    disagreements = only_first + only_second
    return float(binomtest(min(only_first, only_second), disagreements).pvalue) if disagreements else 1.0
