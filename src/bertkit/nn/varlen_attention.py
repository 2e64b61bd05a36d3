"""Attention to packed lists of tokens on a GPU: torch's FlashAttention kernel, which finds the rows in the list itself.

Padding is neither made nor computed, and dropout is inside the kernel. torch's public function for such lists,
``torch.nn.attention.varlen``, has no dropout, so this calls the operator below it, which is differentiable.

Letters: L tokens in the packed list, M of them whose output is computed, H hidden width, W = 2 H or 3 H.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.nn.packing import PackedRows

_WIDEST_HEAD = 256
_WIDTH_STEP = 8
"""The kernel computes heads whose width is a multiple of 8, up to 256."""


def supports(states: Tensor, rows: PackedRows, head_width: int) -> bool:
    """Whether the kernel computes such queries, keys and values: 16-bit floats on a GPU that has it."""
    return (
        rows.offsets is not None
        and states.dtype in (torch.bfloat16, torch.float16)
        and head_width <= _WIDEST_HEAD
        and head_width % _WIDTH_STEP == 0
    )


def attend_packed(
    query: Float[Tensor, "M H"] | None,
    key_value: Float[Tensor, "L W"],
    query_rows: PackedRows,
    rows: PackedRows,
    *,
    num_heads: int,
    rate: float,
    causal: bool = False,
    window: int | None = None,
) -> Float[Tensor, "M H"]:
    """Scaled dot-product attention, with dropout at ``rate`` on the probabilities.

    ``query_rows`` and ``rows`` are where the tokens belong. Without ``query``, ``key_value`` begins with the queries.
    With ``causal`` a token attends to itself and those before it, with a ``window`` to at most that many on each side;
    then the queries must be those of all tokens.
    """
    # Unbound in one operation, whose backward pass is one copy: that of three indices is zeros and sums.
    parts = key_value.view(len(key_value), 2 if query is not None else 3, num_heads, -1).unbind(1)
    context: Tensor
    context, *_ = torch.ops.aten._flash_attention_forward(
        parts[0] if query is None else query.view(len(query), num_heads, -1),
        parts[-2],
        parts[-1],
        query_rows.offsets,
        rows.offsets,
        query_rows.width,
        rows.width,
        rate,
        causal,
        False,  # no mask for debugging
        window_size_left=window,
        window_size_right=window,
    )
    return context.flatten(1)
