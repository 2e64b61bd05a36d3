"""How near a reference implementation is near enough: layers, and what is put together of them."""

from __future__ import annotations

import torch
from torch import Tensor

SIMPLE, COMPOSITE = 1e-5, 1e-4


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    """No number is further off than ``tolerance``, however large it is."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)
