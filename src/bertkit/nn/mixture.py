"""Combining the hidden states of all layers into one per token: the six ways of BERT's Table 7, and ELMo's.

Letters: B rows, T tokens, H hidden width, W width of the combination.
"""

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
"""Name -> (which of [embeddings, block 1, ..., last block], how they are combined).

Only ``embeddings`` reads the embeddings: of a network with fewer than four blocks the last four are all of them.
``sum-all`` is the row "Weighted Sum All 12 Layers" of Table 7.
"""


class LayerMixture(nn.Module):
    """The selected layers concatenated, or summed with trained weights ``softmax(weights)``, initially equal."""

    def __init__(self, name: str, num_layers: int, hidden_size: int) -> None:
        super().__init__()
        layers, how = MIXTURES[name]
        self.selected = [layer for layer in range(num_layers + 1)[layers] if layer or name == "embeddings"]
        count = len(self.selected)
        self.weights = nn.Parameter(torch.zeros(count)) if how == "sum" else None  # the softmax of zeros is uniform
        self.width = hidden_size if how == "sum" else count * hidden_size

    def forward(self, layers: Sequence[Float[Tensor, "*any H"]]) -> Float[Tensor, "*any W"]:
        """``layers`` are the embeddings, then the output of every block."""
        states = [layers[layer] for layer in self.selected]
        if self.weights is None:
            return torch.cat(states, dim=-1)
        return torch.stack(states, dim=-1) @ self.weights.softmax(0)


class ScalarMixture(nn.Module):
    """``gamma * sum_j softmax(weights)_j * layer_j`` over all layers and the embeddings (ELMo, formula 1).

    Without the normalisation that allenai/bilm-tf offers (``elmo.py``): with it a row depends on its batch.
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(num_layers + 1))
        self.gamma = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Equal weights and gamma 1: initially the mean of the layers."""
        nn.init.zeros_(self.weights)
        nn.init.ones_(self.gamma)

    def forward(self, layers: Sequence[Float[Tensor, "B T H"]]) -> Float[Tensor, "B T H"]:
        """``layers`` are the embeddings, then the output of every layer."""
        return torch.stack(list(layers), dim=-1) @ self.weights.softmax(0) * self.gamma
