"""The position-wise feed-forward network of a Transformer block (Vaswani et al. 2017, section 3.3).

Letter: H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

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


class GatedFeedForward(nn.Module):
    """``outer(dropout(activation(x) * gate))`` with ``x, gate = inner(states)`` (Shazeer, arXiv 2002.05202).

    ``inner`` maps H to twice the intermediate width I. With GELU this is GeGLU.
    """

    STACKED: ClassVar[Mapping[str, int]] = {"inner": 2}

    def __init__(self, *, inner: nn.Linear, activation: nn.Module, dropout: nn.Module, outer: nn.Linear) -> None:
        super().__init__()
        self.inner = inner
        self.activation = activation
        self.dropout = dropout
        self.outer = outer

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each token independently."""
        values, gate = self.inner(states).chunk(2, dim=-1)
        new_states: Tensor = self.outer(self.dropout(self.activation(values) * gate))
        return new_states
