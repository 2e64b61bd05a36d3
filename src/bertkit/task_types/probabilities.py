"""Logits as probabilities. The first prediction would wait for the import of scipy, which has the same function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """The probabilities of classes, one of which is right: positive numbers whose sum is 1."""
    powers = np.exp(logits - logits.max())
    shares: NDArray[np.floating] = powers / powers.sum()
    return shares
