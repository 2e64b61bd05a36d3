"""Dropout."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Zero a share ``rate`` of the entries in training and scale up the rest; nothing in evaluation."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, states: Tensor) -> Tensor:
        """``states`` with holes, any shape."""
        return F.dropout(states, self.rate, self.training)
