"""Whether one of two systems is right more often than the other on the same examples."""

from __future__ import annotations

from bertkit.optional import load


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p value of McNemar's exact test (1947): the sign test on the examples that one system gets right.

    ``only_first`` and ``only_second`` count the examples that only that system gets right. 1.0 when there are none.
    """
    disagreements = only_first + only_second
    if not disagreements:
        return 1.0
    return float(load("scipy.stats").binomtest(min(only_first, only_second), disagreements).pvalue)
