"""Whether one of two systems is right more often than the other on the same examples."""

from __future__ import annotations


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p value of the exact test (McNemar 1947): does a fair coin decide which of the two is right?

    From the numbers of examples that only one of them has right; 1.0 when there are none.
    """
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    ways = total = 1
    for heads in range(fewer):
        ways = ways * (tosses - heads) // (heads + 1)
        total += ways
    return min(1.0, 2 * total / (1 << tosses))
