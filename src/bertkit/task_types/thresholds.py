"""The threshold at which a score is highest on dev."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EVEN = 0.5
"""The threshold of a label before one is chosen on dev."""

FEWEST_FOR_THRESHOLD = 5
"""The fewest examples with a label to choose its threshold on."""

_ROUNDING = 1e-5
"""Scores that are nearer to one another than this may change places in other batches, or with another backend, so that
no threshold separates them."""


def best_f1_threshold(gold: NDArray[np.bool_], probabilities: NDArray[np.float64]) -> float:
    """The threshold on ``probabilities`` (N,) with the highest F1 of a label, given where it applies.

    It is half way between two neighbouring probabilities; of several such thresholds, the one nearest to one half.
    """
    order = np.argsort(-probabilities, kind="stable")
    ranked = probabilities[order]
    predicted = np.arange(1, len(ranked) + 1)
    f1 = 2 * np.cumsum(gold[order]) / (predicted + gold.sum())
    below = np.append(ranked[1:], 0.0)
    apart = ranked - below > _ROUNDING
    apart[-1] = True  # the label of every example is predicted, also where all probabilities are 0
    middles = (ranked + below)[apart] / 2
    best = middles[f1[apart] >= f1[apart].max() - 1e-12]
    return float(best[np.abs(best - EVEN).argmin()])


def best_gain_threshold(odds: NDArray[np.float64], gains: NDArray[np.float64]) -> float:
    """The threshold below which the sum of ``gains`` is highest: an example with lower ``odds`` adds its gain.

    Odds that are equal but for rounding are on the same side of the threshold.
    """
    order = np.argsort(odds, kind="stable")
    totals = np.concatenate([[0.0], np.cumsum(gains[order])])
    ranked = np.concatenate([[odds.min() - 2.0], odds[order], [odds.max() + 2.0]])
    totals[np.diff(ranked) <= _ROUNDING] = -np.inf
    best = int(totals.argmax())
    return float((ranked[best] + ranked[best + 1]) / 2)
