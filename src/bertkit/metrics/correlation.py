"""Scores of predicted numbers: the Pearson and the Spearman correlation.

Both are 0.0 when either side is constant, where they are undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertkit.metrics.classification import require_pairs


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """How nearly the predictions are a straight line of the gold numbers, from -1 to 1."""
    require_pairs(gold, predicted)
    return _correlate(np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64))


def spearman(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """How nearly the predictions rank the examples as the gold numbers do."""
    require_pairs(gold, predicted)
    return _correlate(_ranks(gold), _ranks(predicted))


def _correlate(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    if first.min() == first.max() or second.min() == second.max():
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(numbers: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from 1; equal numbers share the mean of theirs."""
    _, places, counts = np.unique(np.asarray(numbers), return_inverse=True, return_counts=True)
    mean_ranks: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return mean_ranks[places]
