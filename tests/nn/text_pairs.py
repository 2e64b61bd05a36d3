"""Random pairs of texts, softmax and weighted sums in plain numpy, for tests of layers that compare two texts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

B, T, W = 3, 7, 4
FIRST, SECOND = (5, 2, 1), (3, 7, 1)
"""The lengths of the texts, row by row."""

Array = NDArray[np.float64]


def make_text(lengths: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens (B, T, W), which are not 0 on padding, and a mask (B, T) that is True on real tokens."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), W, dtype=torch.float64), mask


def softmax(scores: list[float]) -> list[float]:
    total = sum(np.exp(score) for score in scores)
    return [float(np.exp(score) / total) for score in scores]


def weighted_sum(weights: list[float], tokens: Array) -> Array:
    return np.asarray(sum(weight * token for weight, token in zip(weights, tokens, strict=True)))
