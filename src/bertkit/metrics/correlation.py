"""Scores of predicted numbers: the Pearson and the Spearman correlation.

Both are 0.0 when either side is constant, where they are undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from bertkit.metrics.classification import require_pairs


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """How nearly the predictions are a straight line of the gold numbers, from -1 to 1."""
    require_pairs(gold, predicted)
    if min(gold) == max(gold) or min(predicted) == max(predicted):
        return 0.0
    return float(np.corrcoef(gold, predicted)[0, 1])


def spearman(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """How nearly the predictions rank the examples as the gold numbers do; ties share their mean rank."""
    return pearson(rankdata(gold).tolist(), rankdata(predicted).tolist())
