"""The compiled passes of a training step (``fused_training.c``).

Letters: N entries, B examples, L tokens, H hidden width, P rows of probabilities (heads of all examples), Q queries, T
keys, D width of a head, W = K N D for K lists side by side; M labels, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.kernels.amx import round_up_to_tiles
from bertkit.kernels.fused import FORMATS, call, is_compiled, new_floats
from bertkit.kernels.passes import DropMask

_BLOCK = 64
"""Rows over which one partial sum of a LayerNorm's gradients goes. Fixed, so that threads change no sum."""


def supports(states: Tensor) -> bool:
    """Whether the passes can be used for ``states``: float32 or bfloat16 on a CPU, and they are compiled."""
    return states.dtype in FORMATS and states.device.type == "cpu" and is_compiled()


def dropout(states: Float[Tensor, "*N"], mask: DropMask) -> Float[Tensor, "*N"]:
    """``states`` times the scale where they are kept, and 0 elsewhere."""
    states = states.contiguous()
    dropped = torch.empty_like(states)
    call(_name("dropout", states), states, dropped, states.numel(), mask.start, mask.lowest, mask.scale)
    return dropped


def softmax_dropout(
    scores: Float[Tensor, "P Q T"], allowed: Bool[Tensor, "#B #Q T"] | None, mask: DropMask | None
) -> tuple[Float[Tensor, "P Q T"], Float[Tensor, "P Q T"]]:
    """The softmax of each row over its allowed entries, and the same with dropped entries, not scaled."""
    maps, queries, width = scores.shape
    probabilities = torch.empty_like(scores)
    dropped = probabilities if mask is None else torch.empty_like(scores)
    mask_shape = (1, 1) if allowed is None else allowed.shape[:2]
    heads = maps if allowed is None else maps // allowed.shape[0]
    start, lowest = (0, 0) if mask is None else (mask.start, mask.lowest)
    call(
        *(_name("softmax_dropout", scores), scores, None if allowed is None else allowed.contiguous(), probabilities),
        *(None if mask is None else dropped, maps * queries, width, heads, queries, *mask_shape, start, lowest),
    )
    return probabilities, dropped


def softmax_dropout_backward_(
    gradient: Float[Tensor, "P Q T"], probabilities: Float[Tensor, "P Q T"], dropped: Float[Tensor, "P Q T"]
) -> Float[Tensor, "P Q T"]:
    """Turn the gradient of the dropped probabilities into that of the scores, in place."""
    maps, queries, width = gradient.shape
    call(_name("softmax_dropout_backward", gradient), gradient, probabilities, dropped, maps * queries, width)
    return gradient


def split_heads(
    tokens: Float[Tensor, "L W"], entries: Int[Tensor, " L"] | None, *, rows: int, width: int, parts: int, heads: int
) -> Float[Tensor, "{parts} P T D"]:
    """The lists that are side by side in ``tokens``, as the heads of ``rows`` padded rows of ``width`` entries.

    ``entries`` are the entries of the flattened rows that the tokens fill, None for all in order; others are 0.
    """
    size = tokens.shape[1] // (parts * heads)
    split = tokens.new_empty(parts, rows * heads, width, size)
    call(
        _name("split_heads", tokens), tokens.contiguous(), entries, split, len(tokens), rows, width, parts, heads, size
    )
    return split


def merge_heads(
    heads_of_parts: Float[Tensor, "K P T D"], entries: Int[Tensor, " L"] | None, *, heads: int
) -> Float[Tensor, "L W"]:
    """The inverse of ``split_heads``."""
    parts, heads_of_rows, width, size = heads_of_parts.shape
    rows = heads_of_rows // heads
    length = rows * width if entries is None else len(entries)
    tokens = heads_of_parts.new_empty(length, parts * heads * size)
    name = _name("merge_heads", tokens)
    call(name, heads_of_parts.contiguous(), entries, tokens, length, rows, width, parts, heads, size)
    return tokens


def log_sum_exp(logits: Float[Tensor, "M V"]) -> Float[Tensor, " M"]:
    """The logarithm of the sum of the exponentials of each row, in float32. Rows may have gaps between them."""
    sums = new_floats(len(logits))
    call(_name("log_sum_exp", logits), logits, logits.stride(0), sums, *logits.shape)
    return sums


def cross_entropy_backward(
    logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"], sums: Float[Tensor, " M"], scale: float
) -> Float[Tensor, "N V"]:
    """``scale`` times the gradient of the summed cross-entropy of the first M rows; ``sums`` are of ``log_sum_exp``."""
    vocab_size = logits.shape[1]
    stride = round_up_to_tiles(vocab_size)  # as products on AMX have
    gradient = logits.new_empty(len(logits), stride)[:, :vocab_size]
    gradient[len(labels) :] = 0
    arguments = (logits, logits.stride(0), labels, sums, gradient, stride, len(labels), vocab_size, scale)
    call(_name("cross_entropy_backward", logits), *arguments)
    return gradient


class NormedSum(NamedTuple):
    """What ``residual_norm`` keeps for its backward pass: the sum, and mean and 1 / deviation of each token."""

    sums: Float[Tensor, "L H"]
    means: Float[Tensor, " L"]
    inverses: Float[Tensor, " L"]


def residual_norm(
    states: Float[Tensor, "L H"],
    update: Float[Tensor, "L H"],
    weight: Float[Tensor, " H"],
    bias: Float[Tensor, " H"],
    eps: float,
    mask: DropMask | None,
) -> tuple[Float[Tensor, "L H"], NormedSum]:
    """``LayerNorm(states + dropout(update))`` for float32 ``states`` and an ``update`` in float32 or bfloat16."""
    length, width = states.shape
    output = torch.empty_like(states)
    kept = NormedSum(torch.empty_like(states), new_floats(length), new_floats(length))
    call(
        *(_name("residual_norm", update), states, update, weight, bias, kept.sums, output, kept.means, kept.inverses),
        *(length, width, eps, *_drop_arguments(mask)),
    )
    return output, kept


def residual_norm_backward(
    gradient: Float[Tensor, "L H"],
    kept: NormedSum,
    weight: Float[Tensor, " H"],
    mask: DropMask | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of states, update, weight and bias of ``residual_norm``; ``dtype`` is that of the update."""
    length, width = gradient.shape
    gradient = gradient.contiguous()
    to_states, to_update = torch.empty_like(gradient), torch.empty_like(gradient, dtype=dtype)
    partial = new_floats(2, -(-length // _BLOCK), width)
    call(
        *(
            _name("residual_norm_backward", to_update),
            gradient,
            kept.sums,
            kept.means,
            kept.inverses,
            weight,
            to_states,
            to_update,
        ),
        *(partial[0], partial[1], length, width, _BLOCK, *_drop_arguments(mask)),
    )
    return to_states, to_update, *partial.sum(dim=1)


def _name(name: str, states: Tensor) -> str:
    """The name of a pass in C, for the number format of ``states``."""
    return f"{name}_{FORMATS[states.dtype]}"


def _drop_arguments(mask: DropMask | None) -> tuple[int, int, int, float]:
    return (0, 0, 0, 1.0) if mask is None else (1, mask.start, mask.lowest, mask.scale)
