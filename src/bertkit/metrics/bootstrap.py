"""How far a score may be chance: percentile bootstrap over examples (Efron 1979), a matrix of resamples at a time.

A ``Statistic`` takes resamples as indices (R, N) of N examples and gives its K scores of each, (R, K). Two statistics
on the same examples and seed see the same resamples, so their difference is a paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertkit.metrics.classification import require_pairs

Indices = NDArray[np.int64]
Scores = NDArray[np.float64]
Statistic = Callable[[Indices], Scores]

RESAMPLES = 1000
LEVEL = 0.95

_INDICES_AT_A_TIME = 1_000_000


def bootstrap(statistic: Statistic, size: int, *, resamples: int = RESAMPLES, seed: int = 0) -> Scores:
    """(resamples, K) scores of samples with replacement of ``size`` examples."""
    assert size > 0 and resamples > 0
    draw = np.random.default_rng(seed)
    rows = max(1, _INDICES_AT_A_TIME // size)
    counts = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    return np.concatenate([statistic(draw.integers(size, size=(count, size))) for count in counts])


def percentile_interval(scores: Scores, level: float = LEVEL) -> tuple[float, float]:
    """The middle ``level`` of resampled scores."""
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def p_value(differences: Scores) -> float:
    """Two-sided: how often resampled differences lie on one side of zero, doubled; never quite 0 (Davison 1997)."""
    below = np.count_nonzero(differences <= 0)
    above = np.count_nonzero(differences >= 0)
    return min(1.0, 2 * (min(below, above) + 1) / (len(differences) + 1))


def resample_means(values: NDArray[np.float64]) -> Statistic:
    """Of scores that are the means of ``values`` (N, K) of the examples."""
    return lambda indices: np.stack([column[indices].mean(axis=1) for column in values.T], axis=1)


def resample_classes(
    gold: Sequence[str], predicted: Sequence[str], names: Sequence[str], *, positive: str = ""
) -> Statistic:
    """Of ``names`` among accuracy, f1 (of ``positive``), macro_f1 and matthews, as ``classification`` has them."""
    require_pairs(gold, predicted)
    classes = sorted({*gold, *predicted})
    places = {name: place for place, name in enumerate(classes)}
    sought = np.array([places[name] for name in gold])
    found = np.array([places[name] for name in predicted])
    right = np.where(sought == found, sought, len(classes))
    one = places.get(positive)

    def score(indices: Indices) -> Scores:
        of_gold, of_predicted, of_right = (_count(codes[indices], len(classes)) for codes in (sought, found, right))
        counted = _ClassCounts(of_gold, of_predicted, of_right, one)
        return np.stack([getattr(counted, name)() for name in names], axis=1)

    return score


class _ClassCounts:
    """How often each class was sought, found and right in every resample, all (R, C)."""

    def __init__(self, sought: Scores, found: Scores, right: Scores, positive: int | None) -> None:
        self.sought, self.found, self.right, self.positive = sought, found, right, positive
        self.size = sought.sum(axis=1)

    def accuracy(self) -> Scores:
        shares: Scores = self.right.sum(axis=1) / self.size
        return shares

    def f1(self) -> Scores:
        if self.positive is None:
            return np.zeros(len(self.size))
        every: Scores = self._f1_of_classes()[:, self.positive]
        return every

    def macro_f1(self) -> Scores:
        occurs = (self.sought + self.found > 0).sum(axis=1)
        means: Scores = self._f1_of_classes().sum(axis=1) / occurs
        return means

    def matthews(self) -> Scores:
        covariance = self.size * self.right.sum(axis=1) - (self.sought * self.found).sum(axis=1)
        spread = (self.size**2 - (self.sought**2).sum(axis=1)) * (self.size**2 - (self.found**2).sum(axis=1))
        return _divide(covariance, np.sqrt(spread))

    def _f1_of_classes(self) -> Scores:
        return _divide(2 * self.right, self.sought + self.found)


def resample_numbers(gold: Sequence[float], predicted: Sequence[float], names: Sequence[str]) -> Statistic:
    """Of ``names`` among pearson and spearman, as ``correlation`` has them."""
    require_pairs(gold, predicted)
    pair = [np.asarray(numbers, dtype=np.float64) for numbers in (gold, predicted)]
    sides = {"pearson": _draw_numbers, "spearman": _draw_ranks}

    def score(indices: Indices) -> Scores:
        return np.stack([_correlate(*(sides[name](side, indices) for side in pair)) for name in names], axis=1)

    return score


def _draw_numbers(numbers: Scores, indices: Indices) -> Scores:
    return numbers[indices]


def _draw_ranks(numbers: Scores, indices: Indices) -> Scores:
    """Ranks within every resample; equal numbers share the mean of theirs."""
    distinct, places = np.unique(numbers, return_inverse=True)
    drawn = places[indices]
    counts = _count(drawn, len(distinct))
    mean_ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return np.take_along_axis(mean_ranks, drawn, axis=1)


def _correlate(first: Scores, second: Scores) -> Scores:
    varies = (np.ptp(first, axis=1) > 0) & (np.ptp(second, axis=1) > 0)
    first, second = (side - side.mean(axis=1, keepdims=True) for side in (first, second))
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.where(varies, _divide((first * second).sum(axis=1), spread), 0.0)


def _count(codes: NDArray[np.int64], kinds: int) -> Scores:
    """(R, kinds): how often each code occurs in each row; codes from ``kinds`` on are passed over."""
    rows = len(codes)
    shifted = codes + np.arange(rows)[:, None] * (kinds + 1)
    counts = np.bincount(shifted.ravel(), minlength=rows * (kinds + 1)).reshape(rows, kinds + 1)
    return counts[:, :kinds].astype(np.float64)


def _divide(above: Scores, below: Scores) -> Scores:
    """0.0 where a score is undefined."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
