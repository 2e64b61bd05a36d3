"""How well scores rank the positive examples above the others."""

from __future__ import annotations

from collections.abc import Sequence

from bertkit.metrics.classification import require_pairs
from bertkit.optional import load
from bertkit.scores import UNDEFINED


def roc_auc(gold: Sequence[float], scores: Sequence[float]) -> float:
    """The share of pairs of a positive and a negative example in which the positive has the higher score.

    The larger of the two numbers in ``gold`` marks the positives. Equal scores count as half a pair. Undefined without
    a positive or without a negative, and for gold numbers that are graded.
    """
    require_pairs(gold, scores)
    if len(set(gold)) != 2:
        return UNDEFINED
    positive = max(gold)
    return float(load("sklearn.metrics").roc_auc_score([each == positive for each in gold], scores))
