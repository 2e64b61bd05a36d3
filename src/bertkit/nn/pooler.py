"""One vector for a whole row.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.packing import select_tokens


class Pooler(nn.Module):
    """``tanh(dense(token))``: BERT's reading of [CLS]. In pre-training only NSP trains it."""

    def __init__(self, dense: nn.Linear) -> None:
        super().__init__()
        self.dense = dense

    def forward(self, tokens: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        """One vector a row."""
        return torch.tanh(self.dense(tokens))


def pick_tokens(states: Float[Tensor, "B T H"], places: Int[Tensor, " B"]) -> Float[Tensor, "B H"]:
    """The token of each row at its place; ``places`` are on the host."""
    slots = torch.arange(len(places)) * states.shape[1] + places
    return select_tokens(states.flatten(0, 1), slots.to(states.device, non_blocking=True))


def mean_pool(states: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B H"]:
    """The mean of the tokens of each row that ``mask`` has; 0 where there are none."""
    return (states * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def max_pool(states: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B H"]:
    """The largest number of each column among the tokens of each row that ``mask`` has; 0 where there are none."""
    highest = states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)
    return highest.masked_fill(~mask.any(dim=1, keepdim=True), 0)
