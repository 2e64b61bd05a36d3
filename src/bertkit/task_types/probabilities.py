"""Logits as probabilities. The first prediction would wait for the import of scipy, which has the same functions."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Activation = Literal["softmax", "sigmoid", "none"]
"""Hugging Face's names; ``none`` is the identity."""


def softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """The probabilities of classes, one of which is right: positive numbers whose sum is 1."""
    powers = np.exp(logits - logits.max())
    shares: NDArray[np.floating] = powers / powers.sum()
    return shares


def sigmoid(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """The probability of each label by itself. scipy's expit may differ in the last bit, where a threshold may be."""
    shares: NDArray[np.floating] = 0.5 * (1.0 + np.tanh(0.5 * logits))
    return shares
