"""One vector for a whole row.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class FirstTokenPooler(nn.Module):
    """``tanh(dense(first token))``: BERT's reading of [CLS]. In pre-training only NSP trains it."""

    def __init__(self, dense: nn.Linear) -> None:
        super().__init__()
        self.dense = dense

    def forward(self, states: Float[Tensor, "B T H"]) -> Float[Tensor, "B H"]:
        """One vector a row."""
        return torch.tanh(self.dense(states[:, 0]))
