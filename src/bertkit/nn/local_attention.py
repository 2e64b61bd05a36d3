"""Which tokens may attend to which in a sliding window, and rows cut into blocks so that no more is computed.

A block has S = 2 ``window`` queries and the X = 4 ``window`` keys around them. A query that is padding may attend to
itself: a softmax over no key at all would be NaN, and its gradient too.

Letters: B rows, N heads, T tokens of a row, D width of a head, Q queries, P blocks of
all rows, one row after the other, S tokens of a block, X of those that its queries see.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.nn.packing import PackedRows


def band(
    queries: Int[Tensor, "#B Q"], keys: Int[Tensor, " T"], window: int, mask: Bool[Tensor, "#B T"] | None
) -> Bool[Tensor, "#B Q T"]:
    """True where a key is at most ``window`` positions away from the query, and real, which ``mask`` says."""
    distance = (keys - queries[..., None]).abs()
    within = distance <= window
    return within if mask is None else (within & mask[:, None]) | (distance == 0)


def cut_queries(states: Float[Tensor, "B N T D"], window: int) -> Float[Tensor, "P N S D"]:
    """Rows cut into blocks of S tokens; the last block is filled with zeros."""
    size = 2 * window
    rows, heads, width, columns = states.shape
    padded = F.pad(states, (0, 0, 0, -width % size))
    return padded.view(rows, heads, -1, size, columns).transpose(1, 2).flatten(0, 1)


def cut_keys(states: Float[Tensor, "B N T D"], window: int) -> Float[Tensor, "P N X D"]:
    """For each block of queries its tokens, and ``window`` more on both sides."""
    size = 2 * window
    width = states.shape[2]
    padded = F.pad(states, (0, 0, window, -width % size + window))
    blocks = padded.unfold(2, 2 * size, size)  # (B, N, blocks, D, X)
    return blocks.permute(0, 2, 1, 4, 3).flatten(0, 1)


def band_of_blocks(layout: PackedRows, window: int, device: torch.device) -> Bool[Tensor, "P S X"]:
    """``band`` for the blocks of all rows."""
    size = 2 * window
    real = layout.mask
    if real is None:
        real = torch.ones(layout.rows, layout.width, dtype=torch.bool, device=device)
    keys = F.pad(real, (window, -layout.width % size + window)).unfold(1, 2 * size, size).flatten(0, 1)
    places = torch.arange(2 * size, device=device) - window
    return band(torch.arange(size, device=device)[None], places, window, keys)


def join_blocks(blocks: Float[Tensor, "P N S D"], *, rows: int, width: int) -> Float[Tensor, "B N T D"]:
    """The inverse of ``cut_queries``."""
    cut = blocks.view(rows, -1, *blocks.shape[1:])
    return cut.transpose(1, 2).flatten(2, 3)[:, :, :width]
