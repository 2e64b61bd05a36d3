"""The compiled passes of inference (``fused_inference.c``).

Letters: N queries of all texts, or tokens, L tokens of all texts, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.kernels.fused import FORMATS, call, is_compiled

_LONGEST = 48
"""Tokens of the longest text for ``attend_rows``. Heads 32 wide take 0.42 times as long as with torch for 25 tokens and
1.13 times for 64 (bfloat16, one thread of an Intel Xeon with AMX); the limit lies between."""


def can_attend(length: int, size: int, dtype: torch.dtype) -> bool:
    """Whether ``attend_rows`` can be used, and is faster, for texts of ``length`` tokens and heads ``size`` wide."""
    return length <= _LONGEST and size % 4 == 0 and dtype in FORMATS and is_compiled()


def can_normalize(states: Tensor, norm: nn.LayerNorm) -> bool:
    """Whether ``layer_norm`` can be used: weight and bias are float32, as in every loaded model."""
    return states.dtype in FORMATS and norm.weight.dtype == torch.float32 and norm.bias is not None and is_compiled()


def attend_rows(
    query: Float[Tensor, "N H"],
    key: Float[Tensor, "L H"],
    value: Float[Tensor, "L H"],
    out: Float[Tensor, "N H"],
    *,
    rows: int,
    heads: int,
) -> None:
    """Fill ``out`` with the attention of each query to all tokens of its text; the ``rows`` texts are equally long.

    The inputs may be columns of a wider list: only their last dimension must be contiguous.
    """
    queries, length, size = len(query) // rows, len(key) // rows, out.shape[1] // heads
    is_bfloat16 = int(out.dtype == torch.bfloat16)
    strides = (query.stride(0), key.stride(0))
    call("attend_rows", query, key, value, out, is_bfloat16, rows, queries, length, heads, size, *strides)


def layer_norm(
    states: Float[Tensor, "N H"], weight: Float[Tensor, " H"], bias: Float[Tensor, " H"], eps: float
) -> Float[Tensor, "N H"]:
    """LayerNorm of each token, in the format of ``states``; see ``can_normalize``."""
    states = states.contiguous()
    out = torch.empty_like(states)
    call("layer_norm", states, weight, bias, out, int(states.dtype == torch.bfloat16), *states.shape, eps)
    return out
