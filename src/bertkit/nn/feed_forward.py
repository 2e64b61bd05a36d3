"""The position-wise feed-forward network of a Transformer block (Vaswani et al. 2017, section 3.3).

Letter: H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn


class FeedForward(nn.Module):
    """``outer(activation(inner(x)))``: from H to the intermediate width and back."""

    def __init__(self, *, inner: nn.Linear, activation: nn.Module, outer: nn.Linear) -> None:
        super().__init__()
        self.inner = inner
        self.activation = activation
        self.outer = outer

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each token independently."""
        new_states: Tensor = self.outer(self.activation(self.inner(states)))
        return new_states
