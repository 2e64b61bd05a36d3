"""One state of a token from the states of all layers: the six choices of the paper's Table 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

MIXTURES: Mapping[str, tuple[slice, str]] = {
    "embeddings": (slice(0, 1), "concat"),
    "second-to-last": (slice(-2, -1), "concat"),
    "last": (slice(-1, None), "concat"),
    "sum-last-four": (slice(-4, None), "sum"),
    "concat-last-four": (slice(-4, None), "concat"),
    "sum-all": (slice(1, None), "sum"),
}
"""Name -> which of (embeddings, block 1, ..., last block), and how several become one.

``sum-all`` is the row "Weighted Sum All 12 Layers": the blocks without the embeddings.
"""


class Mixture(nn.Module):
    """The chosen layers joined on the last axis, or their sum with trained softmax weights (equal at first)."""

    def __init__(self, name: str, num_layers: int, hidden_size: int) -> None:
        super().__init__()
        self.chosen, how = MIXTURES[name]
        count = len(range(num_layers + 1)[self.chosen])
        self.weights = nn.Parameter(torch.zeros(count)) if how == "sum" else None
        self.width = hidden_size if how == "sum" else count * hidden_size

    def forward(self, layers: Sequence[Float[Tensor, "*any H"]]) -> Float[Tensor, "*any W"]:
        """``layers`` are the embeddings and then every block's output."""
        states = list(layers)[self.chosen]
        if self.weights is None:
            return torch.cat(states, dim=-1)
        return torch.stack(states, dim=-1) @ self.weights.softmax(0)
