"""One vector per row from the states of all its tokens, for heads that do not read the pooled state.

Letters: B rows, T tokens, H hidden width, E features of a token.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.alignment import masked_softmax
from bertkit.nn.pooler import max_pool, mean_pool

Pooling = Literal["cls", "mean", "max"]
"""What a head reads of a row: the encoder's own pooled state (for BERT that of [CLS]), the mean or the maximum."""

_POOLS = {"mean": mean_pool, "max": max_pool}

_SHARPNESS = 10.0
"""The factor of cosines in the softmax: a token of cosine 1 outweighs one of 0.5 by 150."""


def pool_states(states: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"], pooling: Pooling) -> Float[Tensor, "B H"]:
    """The mean or the maximum of the states of each row where ``mask`` is True, or the first state (``cls``)."""
    return states[:, 0] if pooling == "cls" else _POOLS[pooling](states, mask)


class TextPooling(nn.Module):
    """``tanh(dense(x))``, where x is the mean of the states of a row, or their elementwise maximum."""

    def __init__(self, hidden_size: int, kind: Literal["mean", "max"]) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.pool = _POOLS[kind]

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        embeddings: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"],
        segment_ids: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B H"]:
        """The vector of each row; ``mask`` is True on real tokens. The other two are for ``PairPooling``."""
        return torch.tanh(self.dense(self.pool(states, mask)))


class PairPooling(nn.Module):
    """``tanh(dense([a, b]))`` of two texts, which are compared token by token.

    Each token of the first text is compared with what is like it in the second: the mean of its tokens, weighted by how
    alike their embeddings are (Parikh et al., arXiv 1606.01933, section 3). a is the mean, or the elementwise maximum,
    of the absolute differences; b is the same for the second text. A token is its state beside its embedding: what
    pre-training turns into predictions of words no longer shows which words two texts share.

    Special tokens belong to the text before them, [CLS] to the first. docs/decisions.md has the scores, also of heads
    that read both texts as a whole.
    """

    def __init__(self, hidden_size: int, kind: Literal["mean", "max"]) -> None:
        super().__init__()
        self.dense = nn.Linear(4 * hidden_size, hidden_size)
        self.pool = _POOLS[kind]

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        embeddings: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"],
        segment_ids: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B H"]:
        """The vector of each row; ``mask`` is True on real tokens, ``segment_ids`` are 0 and 1 for the two texts."""
        tokens = torch.cat([states, embeddings], dim=2)
        directions = F.normalize(embeddings.float(), dim=2)
        with torch.autocast(directions.device.type, enabled=False):  # in bfloat16 near 10 these are multiples of 1/16
            alike = _SHARPNESS * directions @ directions.transpose(1, 2)
        first, second = mask & (segment_ids == 0), mask & (segment_ids == 1)
        differences = [
            self.pool((tokens - _align(tokens, alike, others)).abs(), own)
            for own, others in ((first, second), (second, first))
        ]
        return torch.tanh(self.dense(torch.cat(differences, dim=1)))


def _align(
    tokens: Float[Tensor, "B T E"], alike: Float[Tensor, "B T T"], others: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T E"]:
    """For every token the mean of the ``others``, weighted by the softmax of how ``alike`` they are; 0 without any."""
    return masked_softmax(alike, others.unsqueeze(1)).to(tokens.dtype) @ tokens
