"""The position-wise network of a Transformer block.

Letter: H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn


class FeedForward(nn.Module):
    """``outer(activation(inner(x)))``, H to the intermediate width and back."""

    def __init__(self, *, inner: nn.Linear, activation: nn.Module, outer: nn.Linear) -> None:
        super().__init__()
        self.inner = inner
        self.activation = activation
        self.outer = outer

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each token by itself."""
        new_states: Tensor = self.outer(self.activation(self.inner(states)))
        return new_states
