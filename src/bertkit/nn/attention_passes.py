"""Attention for training on a CPU: plain products, and backward passes written by hand.

torch's own CPU kernel has no dropout, and its backward pass reaches an eighth of the speed of a plain product.
Forward and backward for 32 x 128 tokens, 4 heads of 64, bfloat16, one core of an AMD Zen 4: 15 ms, with torch 60 ms.
Of long rows it is faster: there the scores, which it does not keep for the backward pass, no longer fit into caches.

Letters: B examples, N heads, P = B N, Q queries and T keys of an example, D width of a head, H = N D; M queries and L
keys in packed lists, W = K H for K = 2 (keys and values) or 3 (queries too); X, Y and Z any sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertkit.kernels import amx, amx_attention, fused_training, passes
from bertkit.kernels.amx_attention import ALL_TOKENS, RowLengths
from bertkit.kernels.passes import Context
from bertkit.nn.dropout import draw_mask, drop_, find_kept, keep_scale
from bertkit.nn.packing import PackedRows

_LONG = 512
"""Tokens of a row from which on torch's kernel is faster in float32 without dropout. A layer of 4 heads of 64 takes
0.74 of the time then, with 1,024 tokens 0.61, with 2,048 0.60 (a core of a Xeon with AMX); with 256 they are equal."""


def train_faster(states: Tensor, width: int, head_width: int, rate: float) -> bool:
    """Whether these passes train rows of ``width`` tokens faster than torch's kernel, or with dropout, which it lacks.

    In bfloat16 torch's kernel is faster where the processor has AMX but rows are too long for our kernel (0.93 of the
    time for 1,024 tokens, 0.74 for 2,048); without AMX it was measured for short rows only.
    """
    if not passes.trains_on_cpu(states):
        return False
    if rate > 0 or width < _LONG or amx_attention.supports(width, width, head_width, states.dtype):
        return True
    return states.dtype != torch.float32 and not amx.is_available()


def attend_heads(
    query: Float[Tensor, "B N Q D"],
    key: Float[Tensor, "B N T D"],
    value: Float[Tensor, "B N T D"],
    allowed: Bool[Tensor, "#B #Q T"] | None,
    rate: float,
) -> Float[Tensor, "B N Q D"]:
    """Scaled dot-product attention with dropout at ``rate`` on the probabilities."""
    context: Tensor = _AttendHeads.apply(query, key, value, allowed, rate)  # type: ignore[no-untyped-call]
    return context


def attend_tokens(
    query: Float[Tensor, "M H"] | None,
    key_value: Float[Tensor, "L W"],
    query_rows: PackedRows,
    rows: PackedRows,
    allowed: Bool[Tensor, "#B #Q T"] | None,
    num_heads: int,
    rate: float,
) -> Float[Tensor, "M H"]:
    """``attend_heads`` for packed lists of tokens: one copy makes heads of them, and one makes a list of the result.

    ``query_rows`` and ``rows`` are where the tokens belong. Without ``query``, ``key_value`` begins with the queries.
    """
    context: Tensor = _AttendTokens.apply(  # type: ignore[no-untyped-call]
        query, key_value, _Heads(query_rows, num_heads), _Heads(rows, num_heads), allowed, rate
    )
    return context


@dataclass(frozen=True, slots=True)
class _Heads:
    """Turns packed lists of tokens into heads and back; both directions are one copy."""

    layout: PackedRows
    number: int

    def split(self, tokens: Float[Tensor, "L W"], parts: int) -> Float[Tensor, "{parts} P T D"]:
        """The lists that are side by side in ``tokens``; entries without a token are 0."""
        if fused_training.supports(tokens):
            rows, width = self.layout.rows, self.layout.width
            return fused_training.split_heads(
                tokens, self.layout.indices, rows=rows, width=width, parts=parts, heads=self.number
            )
        rows = self.layout.rows
        if self.layout.indices is not None:
            entries = tokens.new_zeros(rows * self.layout.width, tokens.shape[1])
            tokens = entries.index_copy_(0, self.layout.indices, tokens)
        heads = tokens.view(rows, self.layout.width, parts, self.number, -1).permute(2, 0, 3, 1, 4)
        return heads.reshape(parts, rows * self.number, self.layout.width, -1)

    def merge(self, heads: Float[Tensor, "K P T D"]) -> Float[Tensor, "L W"]:
        """The inverse of ``split``."""
        if fused_training.supports(heads):
            return fused_training.merge_heads(heads, self.layout.indices, heads=self.number)
        parts, _, width, size = heads.shape
        entries = heads.view(parts, self.layout.rows, self.number, width, size).permute(1, 3, 0, 2, 4)
        tokens = entries.reshape(self.layout.rows * width, -1)
        return tokens if self.layout.indices is None else tokens.index_select(0, self.layout.indices)


class _AttendTokens(torch.autograd.Function):
    """``attend_tokens``, which splits and merges the heads inside, so that no view or padding needs a gradient."""

    @staticmethod
    def forward(
        ctx: Context,
        query: Float[Tensor, "M H"] | None,
        key_value: Float[Tensor, "L W"],
        query_heads: _Heads,
        heads: _Heads,
        allowed: Bool[Tensor, "#B #Q T"] | None,
        rate: float,
    ) -> Float[Tensor, "M H"]:
        parts = heads.split(key_value, 3 if query is None else 2)
        own = parts[0] if query is None else query_heads.split(query, 1)[0]
        lengths = RowLengths(query_heads.layout.lengths, heads.layout.lengths)
        context, saved = _forward(own, parts[-2], parts[-1], allowed, rate, lengths)
        ctx.save_for_backward(*saved)
        ctx.scale = keep_scale(rate)
        ctx.heads = (query_heads, heads, query is None)
        return query_heads.merge(context[None])

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, gradient: Float[Tensor, "M H"]) -> tuple[Tensor | None, ...]:
        query_heads, heads, is_joined = ctx.heads
        saved = ctx.saved_tensors
        query, key = saved[:2]
        to_parts = key.new_empty(3 if is_joined else 2, *key.shape)
        to_query = to_parts[0] if is_joined else torch.empty_like(query)
        lengths = RowLengths(query_heads.layout.lengths, heads.layout.lengths)
        gradients = (to_query, to_parts[-2], to_parts[-1])
        _backward(saved, query_heads.split(gradient, 1)[0], ctx.scale, gradients, lengths)
        own = None if is_joined else query_heads.merge(to_query[None])
        return own, heads.merge(to_parts), None, None, None, None


class _AttendHeads(torch.autograd.Function):
    """``attend_heads``."""

    @staticmethod
    def forward(
        ctx: Context,
        query: Float[Tensor, "B N Q D"],
        key: Float[Tensor, "B N T D"],
        value: Float[Tensor, "B N T D"],
        allowed: Bool[Tensor, "#B #Q T"] | None,
        rate: float,
    ) -> Float[Tensor, "B N Q D"]:
        queries, keys, values = (part.flatten(0, 1).contiguous() for part in (query, key, value))
        context, saved = _forward(queries, keys, values, allowed, rate, ALL_TOKENS)
        ctx.save_for_backward(*saved)
        ctx.scale = keep_scale(rate)
        return context.view(query.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, gradient: Float[Tensor, "B N Q D"]) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        gradients = tuple(torch.empty_like(part) for part in saved[:3])
        _backward(saved, gradient.flatten(0, 1).contiguous(), ctx.scale, gradients, ALL_TOKENS)
        return *(part.view(*gradient.shape[:2], *part.shape[1:]) for part in gradients), None, None


def _forward(
    query: Float[Tensor, "P Q D"],
    key: Float[Tensor, "P T D"],
    value: Float[Tensor, "P T D"],
    allowed: Bool[Tensor, "#B #Q T"] | None,
    rate: float,
    lengths: RowLengths,
) -> tuple[Float[Tensor, "P Q D"], tuple[Tensor | None, ...]]:
    """The result, and what ``_backward`` needs. Only AMX skips what lies beyond the ``lengths``."""
    mask = draw_mask(rate) if rate > 0 else None
    if _is_on_amx(query, key):
        attended = amx_attention.attend(query, key, value, allowed, mask, lengths)
        return attended.context, (query, key, value, attended.probabilities, attended.dropped)
    scores = _product(query, key.transpose(1, 2), query.shape[-1] ** -0.5)
    kept: Tensor | None
    if fused_training.supports(scores):
        probabilities, dropped = fused_training.softmax_dropout(scores, allowed, mask)
        kept = dropped  # 0 where an entry was dropped
    else:
        probabilities = _softmax(scores, allowed)
        kept = None if mask is None else find_kept(scores.shape, mask)
        dropped = _apply_dropout(probabilities, kept)
    return _product(dropped, value, keep_scale(rate)), (query, key, value, probabilities, kept)


def _backward(
    saved: tuple[Any, ...],
    gradient: Float[Tensor, "P Q D"],
    scale: float,
    gradients: tuple[Tensor, ...],
    lengths: RowLengths,
) -> None:
    """Fill ``gradients``, those of query, key and value, from what ``_forward`` ``saved``."""
    query, key, value, probabilities, kept = saved
    to_query, to_key, to_value = gradients
    if _is_on_amx(query, key):
        amx_attention.attend_backward(gradient, query, key, value, probabilities, kept, scale, gradients, lengths)
        return
    to_probabilities = _product(gradient, value.transpose(1, 2), scale)
    if fused_training.supports(probabilities):
        dropped = kept
        to_scores = fused_training.softmax_dropout_backward_(to_probabilities, probabilities, dropped)
    else:
        # Without the compiled passes dropout is applied again, and its mask of 16 bits is kept, not a second result.
        dropped = _apply_dropout(probabilities, kept)
        if kept is not None:
            drop_(to_probabilities, kept)
        to_scores = torch._softmax_backward_data(to_probabilities, probabilities, -1, probabilities.dtype)
    _product(dropped.transpose(1, 2), gradient, scale, out=to_value)
    _product(to_scores, key, key.shape[-1] ** -0.5, out=to_query)
    _product(to_scores.transpose(1, 2), query, key.shape[-1] ** -0.5, out=to_key)


def _is_on_amx(query: Float[Tensor, "P Q D"], key: Float[Tensor, "P T D"]) -> bool:
    return amx_attention.supports(query.shape[1], key.shape[1], query.shape[2], key.dtype)


def _softmax(scores: Float[Tensor, "P Q T"], allowed: Bool[Tensor, "#B #Q T"] | None) -> Float[Tensor, "P Q T"]:
    """The softmax of each row over its allowed entries."""
    if allowed is not None:  # added in place: the scores are the largest tensor here
        bias = torch.zeros(allowed.shape, dtype=scores.dtype).masked_fill_(~allowed, float("-inf"))
        scores.view(len(allowed), -1, *scores.shape[1:]).add_(bias[:, None])
    return torch.softmax(scores, dim=-1)


def _apply_dropout(probabilities: Tensor, kept: Tensor | None) -> Tensor:
    return probabilities if kept is None else drop_(probabilities.clone(), kept)


def _product(
    left: Float[Tensor, "P X Y"], right: Float[Tensor, "P Y Z"], scale: float, out: Tensor | None = None
) -> Float[Tensor, "P X Z"]:
    """``scale * left @ right``. baddbmm applies the scale inside the kernel, which saves a pass over the result."""
    ignored = left.new_empty(1).expand(len(left), left.shape[1], right.shape[2])  # beta=0: never read
    return torch.baddbmm(ignored, left, right, beta=0, alpha=scale, out=out)
