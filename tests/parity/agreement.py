"""Tolerances of the comparison with a reference implementation: of single layers, and of whole networks."""

from __future__ import annotations

import torch
from torch import Tensor

SIMPLE, COMPOSITE = 1e-5, 1e-4


def close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Assert that no number differs by more than ``tolerance``, absolute and not relative."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)
