"""One vector per row: the pooled output.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.packing import select_tokens


class Pooler(nn.Module):
    """``tanh(dense(token))`` of the [CLS] token. In BERT's pre-training only NSP trains it."""

    def __init__(self, dense: nn.Linear) -> None:
        super().__init__()
        self.dense = dense

    def forward(self, tokens: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        """The pooled output for one token per row."""
        return torch.tanh(self.dense(tokens))


def pick_tokens(states: Float[Tensor, "B T H"], columns: Int[Tensor, " B"]) -> Float[Tensor, "B H"]:
    """``states[i, columns[i]]`` for every row i; ``columns`` is on the host."""
    indices = torch.arange(columns.shape[0]) * states.shape[1] + columns
    # Not states[rows, columns], whose backward pass adds token by token (see packing.py).
    return select_tokens(states.flatten(0, 1), indices.to(states.device, non_blocking=True))


def pool_directions(states: Float[Tensor, "B T H"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B H"]:
    """The final state of both directions of a BiLSTM: of the last real token, and of the first; ``real`` is on the
    host."""
    half = states.shape[2] // 2
    return torch.cat([pick_tokens(states, real.sum(dim=1) - 1)[:, :half], states[:, 0, half:]], dim=1)


def mean_pool(states: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B H"]:
    """The mean of the tokens of each row where ``mask`` is True; 0 without any."""
    return (states * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def max_pool(states: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B H"]:
    """The elementwise maximum of the tokens of each row where ``mask`` is True; 0 without any."""
    highest = states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)
    return highest.masked_fill(~mask.any(dim=1, keepdim=True), 0)
