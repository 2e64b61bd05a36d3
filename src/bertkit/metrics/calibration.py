"""Calibration: whether predictions are right as often as their probabilities say (Guo et al. 2017).

The bins are those of scikit-learn's ``calibration_curve``, which does not return their sizes; the error needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertkit.errors import data_error

_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """The ``count`` predictions with a probability above ``low`` and up to ``high``.

    ``confidence`` is their mean probability, ``accuracy`` the share of them that are right.
    """

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability(confidences: ArrayLike, correct: ArrayLike) -> list[Bin]:
    """Ten bins of equal width from 0 to 1, from ``confidences`` (N,) and ``correct`` (N,); empty bins are left out."""
    probabilities, is_correct = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    assert probabilities.shape == is_correct.shape and probabilities.ndim == 1
    if not len(probabilities):
        raise data_error("there is nothing to calibrate: no prediction has a probability.")
    edges = np.linspace(0, 1, _BINS + 1)
    numbers = np.searchsorted(edges[1:-1], probabilities)
    found = []
    for number in np.unique(numbers).tolist():
        inside = numbers == number
        means = float(probabilities[inside].mean()), float(is_correct[inside].mean())
        found.append(Bin(float(edges[number]), float(edges[number + 1]), int(inside.sum()), *means))
    return found


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """The mean over all predictions of the distance between the accuracy and the confidence of their bin."""
    distance = sum(each.count * abs(each.accuracy - each.confidence) for each in bins)
    return distance / sum(each.count for each in bins)
