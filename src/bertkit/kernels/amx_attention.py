"""Attention on AMX, in training and in inference (``amx_attention.c``).

Letters: B examples, R rows, P heads of all rows, Q queries and T keys of a row, D width of a head; in lists N queries
and L keys of all texts, H hidden width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.kernels.amx import call_on_amx, is_available, round_up_to_tiles
from bertkit.kernels.passes import DropMask

_LONGEST = 1536
"""Keys, queries and widths of a head over which a product may sum: 32 ``DEPTH`` of amx.h."""

_MOST_SCORES = 704 * 704
"""The most scores of one head, padded to whole tiles: in the backward pass they must fit into ``SPACE`` of amx.h."""


def supports(queries: int, keys: int, size: int, dtype: torch.dtype) -> bool:
    """Whether this module can attend to heads of these lengths and width on a CPU: bfloat16, with AMX, not too long."""
    return (
        dtype == torch.bfloat16
        and min(queries, keys, size) > 0
        and max(queries, keys, size) <= _LONGEST
        and round_up_to_tiles(queries) * round_up_to_tiles(keys) <= _MOST_SCORES
        and is_available()
    )


class RowLengths(NamedTuple):
    """How many of the queries and keys of each row are tokens, from the first on; None: all are.

    The others are not computed, and their results and gradients are 0. No query may attend to such a key.
    """

    queries: Int[Tensor, " R"] | None = None
    keys: Int[Tensor, " R"] | None = None

    def arguments(self, maps: int) -> tuple[Tensor | None, Tensor | None, int]:
        """Both, and how many of ``maps`` share a row, as the functions in C want them."""
        known = self.queries if self.keys is None else self.keys
        return self.queries, self.keys, maps if known is None else maps // len(known)


ALL_TOKENS = RowLengths()


class Attended(NamedTuple):
    """The result, and the probabilities before and after dropout, which the backward pass needs.

    Those of queries and keys that are no tokens are not set.
    """

    context: Float[Tensor, "P Q D"]
    probabilities: Float[Tensor, "P Q T"]
    dropped: Float[Tensor, "P Q T"]


def attend(
    query: Float[Tensor, "P Q D"],
    key: Float[Tensor, "P T D"],
    value: Float[Tensor, "P T D"],
    allowed: Bool[Tensor, "#B #Q T"] | None,
    mask: DropMask | None,
    lengths: RowLengths = ALL_TOKENS,
) -> Attended:
    """``dropout(softmax(query key^T / sqrt(D))) value`` of each head, over the allowed keys.

    A query without an allowed key gives NaN.
    """
    maps, queries, size = query.shape
    keys = key.shape[1]
    context = torch.empty_like(query)
    probabilities = query.new_empty(maps, queries, keys)
    dropped = probabilities if mask is None else torch.empty_like(probabilities)
    examples, mask_queries = (1, 1) if allowed is None else (allowed.shape[0], allowed.shape[1])
    drop = DropMask(0, 0, 1.0) if mask is None else mask
    call_on_amx(
        "attend_heads",
        *(query, key, value, context, maps, 1, queries, keys, size, size, size, size),
        *(None if allowed is None else allowed.contiguous(), examples, mask_queries, maps // examples),
        *lengths.arguments(maps),
        *(probabilities, None if mask is None else dropped, drop.start, drop.lowest, drop.scale),
    )
    return Attended(context, probabilities, dropped)


def attend_backward(
    gradient: Float[Tensor, "P Q D"],
    query: Float[Tensor, "P Q D"],
    key: Float[Tensor, "P T D"],
    value: Float[Tensor, "P T D"],
    probabilities: Float[Tensor, "P Q T"],
    dropped: Float[Tensor, "P Q T"],
    scale: float,
    gradients: tuple[Tensor, ...],
    lengths: RowLengths = ALL_TOKENS,
) -> None:
    """Fill ``gradients``, those of query, key and value, from that of the result; the rest is of ``attend``."""
    maps, queries, size = query.shape
    to_query, to_key, to_value = gradients
    call_on_amx(
        "attend_heads_backward",
        *(gradient, query, key, value, probabilities, dropped, to_query, to_key, to_value),
        *(maps, queries, key.shape[1], size, *lengths.arguments(maps), scale),
    )


def attend_rows(
    query: Float[Tensor, "N H"],
    key: Float[Tensor, "L H"],
    value: Float[Tensor, "L H"],
    out: Float[Tensor, "N H"],
    *,
    rows: int,
    heads: int,
) -> None:
    """As ``fused_inference.attend_rows``: the attention of each query to all tokens of its text."""
    queries, keys, size = len(query) // rows, len(key) // rows, out.shape[1] // heads
    call_on_amx(
        "attend_heads",
        *(query, key, value, out, rows, heads, queries, keys, size),
        *(query.stride(0), key.stride(0), out.stride(0), None, 1, 1, 1, *ALL_TOKENS.arguments(rows * heads)),
        *(None, None, 0, 0, 1.0),
    )
