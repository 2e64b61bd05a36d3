"""The layer of ModernBERT before the output layer of every objective.

Letters: H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn


class PredictionHead(nn.Module):
    """``norm(activation(dense(states)))``."""

    def __init__(self, *, dense: nn.Linear, activation: nn.Module, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.dense = dense
        self.activation = activation
        self.norm = norm

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each state independently."""
        new_states: Tensor = self.norm(self.activation(self.dense(states)))
        return new_states
