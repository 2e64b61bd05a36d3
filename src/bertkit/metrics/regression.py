"""Scores of predicted numbers: Pearson and Spearman correlation, both from -1 to 1, and the mean absolute error.

The correlations are undefined when either side is constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertkit.metrics.classification import require_pairs
from bertkit.optional import load
from bertkit.scores import UNDEFINED


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Linear correlation of the predictions with the gold numbers."""
    if _is_undefined(gold, predicted):
        return UNDEFINED
    # Not scipy's pearsonr, which warns of almost constant predictions, as after a first epoch; it differs by rounding.
    return float(np.corrcoef(gold, predicted)[0, 1])


def spearman(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Rank correlation of the predictions with the gold numbers; equal numbers share their mean rank."""
    if _is_undefined(gold, predicted):
        return UNDEFINED
    return float(load("scipy.stats").spearmanr(gold, predicted).statistic)


def mean_absolute_error(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """The mean distance of the predictions from the gold numbers, in their unit."""
    require_pairs(gold, predicted)
    return float(np.mean(np.abs(np.subtract(gold, predicted))))


def _is_undefined(gold: Sequence[float], predicted: Sequence[float]) -> bool:
    require_pairs(gold, predicted)
    return min(gold) == max(gold) or min(predicted) == max(predicted)
