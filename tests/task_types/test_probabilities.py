"""Probabilities are those of scipy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from bertkit.task_types.probabilities import softmax


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_softmax_is_that_of_scipy(scale: float) -> None:
    logits = np.random.default_rng(7).normal(scale=scale, size=13)
    np.testing.assert_array_equal(softmax(logits), special.softmax(logits))
    assert softmax(logits).sum() == pytest.approx(1)
