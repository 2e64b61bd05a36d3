"""Whether answers are right as often as their probabilities say: reliability bins and their error (Guo et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertkit.errors import data_error


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers with a probability above ``low`` and up to ``high``: how many, how sure and how often right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability(confidences: ArrayLike, right: ArrayLike, *, bins: int = 10) -> list[Bin]:
    """Equal steps from 0 to 1; those without an answer are left out."""
    sure, metrics = np.asarray(confidences, dtype=np.float64), np.asarray(right, dtype=np.float64)
    assert sure.shape == metrics.shape and sure.ndim == 1
    if not len(sure):
        raise data_error("there is nothing to calibrate: no answer has a probability.")
    edges = np.linspace(0, 1, bins + 1)
    places = np.searchsorted(edges[1:-1], sure)
    found = []
    for place in np.unique(places).tolist():
        here = places == place
        means = float(sure[here].mean()), float(metrics[here].mean())
        found.append(Bin(float(edges[place]), float(edges[place + 1]), int(here.sum()), *means))
    return found


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """The distance of accuracy from confidence, averaged over the answers."""
    distance = sum(each.count * abs(each.accuracy - each.confidence) for each in bins)
    return distance / sum(each.count for each in bins)
