"""How well scores rank the positive examples above the others."""

from __future__ import annotations

from collections.abc import Sequence

from bertkit.metrics.classification import require_pairs
from bertkit.optional import load
from bertkit.scores import UNDEFINED


def roc_auc(gold: Sequence[float], scores: Sequence[float]) -> float:
    """The share of pairs of a positive (``gold`` 1) and a negative (0) in which the positive has the higher score.

    Equal scores count as half a pair. Undefined without a positive or without a negative.
    """
    require_pairs(gold, scores)
    return float(load("sklearn.metrics").roc_auc_score(gold, scores)) if len(set(gold)) == 2 else UNDEFINED
