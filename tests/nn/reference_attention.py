"""Self-attention written out row by row, for the tests of attention and of whole blocks."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention

H, NUM_HEADS = 28, 4


def make_attention(dropout: float = 0.0, *, causal: bool = False) -> SelfAttention:
    qkv, output = nn.Linear(H, 3 * H), nn.Linear(H, H)
    return SelfAttention(qkv=qkv, output=output, num_heads=NUM_HEADS, dropout=dropout, causal=causal)


def attend(attention: SelfAttention, states: Tensor, mask: Tensor | None) -> Tensor:
    """Bidirectional attention of (B, T, H), one row and one head at a time; ``mask`` is True on real tokens."""
    query, key, value = attention.qkv(states).split(H, dim=-1)
    width = H // NUM_HEADS
    mixed = torch.zeros_like(states)
    for row in range(len(states)):
        for head in range(NUM_HEADS):
            part = slice(head * width, (head + 1) * width)
            scores = query[row, :, part] @ key[row, :, part].T / math.sqrt(width)
            if mask is not None:
                scores = scores.masked_fill(~mask[row], float("-inf"))
            mixed[row, :, part] = scores.softmax(dim=-1) @ value[row, :, part]
    output: Tensor = attention.output(mixed)
    return output


def attend_causally(attention: SelfAttention, states: Tensor) -> Tensor:
    """Causal attention of (B, T, H), one query at a time, which gets only the keys and values that it may use."""
    query, key, value = attention.qkv(states).unflatten(-1, (3, NUM_HEADS, H // NUM_HEADS)).unbind(-3)
    rows = []
    for token in range(states.shape[1]):
        visible = slice(0, token + 1)
        scores = torch.einsum("bnd,btnd->bnt", query[:, token], key[:, visible]) / math.sqrt(H // NUM_HEADS)
        rows.append(torch.einsum("bnt,btnd->bnd", scores.softmax(dim=-1), value[:, visible]).flatten(1))
    output: Tensor = attention.output(torch.stack(rows, dim=1))
    return output
