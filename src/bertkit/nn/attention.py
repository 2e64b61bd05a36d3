"""Multi-head self-attention (Vaswani et al. 2017, section 3.2), bidirectional or causal.

    attention(Q, K, V) = softmax(Q K^T / sqrt(D)) V        per head

Letters: L tokens in the packed list, M of them whose output is computed; in padded rows: B examples, T tokens, Q of
them that are computed; H hidden width, N heads, D width of a head (H / N).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn import cpu_kernels, fused
from bertkit.nn.dropout import draw_mask, drop_, find_kept, keep_scale
from bertkit.nn.local_attention import band, band_of_blocks, cut_keys, cut_queries, join_blocks
from bertkit.nn.packing import PackedRows, TokenSubset, select_tokens
from bertkit.nn.rotary import rotate


class SelfAttention(nn.Module):
    """Every token attends to every real token of its row, or if ``causal`` to itself and the tokens before it.

    ``qkv`` maps H to 3H, queries, keys and values in one product; ``output`` maps H to H. ``dropout`` is the rate on
    the attention probabilities, in training only. With ``rope_theta`` queries and keys are rotated by their position.
    With a ``window`` a token attends to at most that many tokens on each side (not together with ``causal``).
    """

    STACKED: ClassVar[Mapping[str, int]] = {"qkv": 3}

    def __init__(
        self,
        *,
        qkv: nn.Linear,
        output: nn.Linear,
        num_heads: int,
        dropout: float,
        causal: bool = False,
        rope_theta: float | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.qkv = qkv
        self.output = output
        self.num_heads = num_heads
        self.dropout = dropout
        self.causal = causal
        self.rope_theta = rope_theta
        self.window = window

    def forward(
        self,
        states: Float[Tensor, "L H"],
        layout: PackedRows,
        subset: TokenSubset | None = None,
    ) -> Float[Tensor, "M H"]:
        """The attention output of the tokens of ``subset``, by default of all; keys and values are all ``states``."""
        query, key, value = (self._split_heads(part) for part in self._project(states, layout, subset))
        if self.window is not None and subset is None and layout.width > 4 * self.window:  # blocks are then cheaper
            mixed = self._attend_in_blocks(query, key, value, layout, self.window)
        elif self.causal and subset is None and not cpu_kernels.applies(query):
            # torch has fused kernels for is_causal, but not for a causal mask
            mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=self._rate, is_causal=True)
        else:
            mixed = self._attend(query, key, value, self._attention_mask(layout, subset))
        output_layout = layout if subset is None else subset.layout
        new_states: Tensor = self.output(output_layout.unpad(mixed.transpose(1, 2).flatten(2)))
        return new_states

    def probabilities(self, states: Float[Tensor, "L H"], layout: PackedRows) -> Float[Tensor, "B N T T"]:
        """How much each token attends to each other, per head; ``forward`` never has them in memory."""
        query, key, _ = (self._split_heads(part) for part in self._project(states, layout, None))
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        allowed = self._attention_mask(layout, None)
        if allowed is not None:
            scores = scores.masked_fill(~allowed[:, None], float("-inf"))
        shares: Tensor = scores.softmax(dim=-1)
        return shares

    @property
    def _rate(self) -> float:
        return self.dropout if self.training else 0.0

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Bool[Tensor, "#B #Q T"] | None
    ) -> Float[Tensor, "B N Q D"]:
        if cpu_kernels.applies(query):
            mixed: Tensor = _Attend.apply(query, key, value, allowed, self._rate)  # type: ignore[no-untyped-call]
            return mixed
        mask = None if allowed is None else allowed[:, None]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=self._rate)

    def _attend_in_blocks(
        self, query: Tensor, key: Tensor, value: Tensor, layout: PackedRows, window: int
    ) -> Float[Tensor, "B N T D"]:
        """Attention to a window in time and memory proportional to T: 8,192 tokens in full would be 67 M scores."""
        allowed = band_of_blocks(layout, window, query.device)
        mixed = self._attend(cut_queries(query, window), cut_keys(key, window), cut_keys(value, window), allowed)
        return join_blocks(mixed, rows=layout.rows, width=layout.width)

    def _project(self, states: Tensor, layout: PackedRows, subset: TokenSubset | None) -> tuple[Tensor, ...]:
        """Queries (B, Q, H), keys and values (B, T, H), padded. Only the tokens of ``subset`` need a query."""
        if subset is None:
            mapped = self._rotate(self.qkv(states), layout, heads=2 * self.num_heads)
            return torch.chunk(layout.pad(mapped), 3, dim=-1)
        # The rows of the weight are those of the queries, then of the keys, then of the values.
        width = states.shape[-1]
        weight, bias = self.qkv.weight, self.qkv.bias
        query_bias, key_value_bias = (None, None) if bias is None else (bias[:width], bias[width:])
        query = F.linear(select_tokens(states, subset.indices), weight[:width], query_bias)
        query = self._rotate(query, layout, subset, heads=self.num_heads)
        key_value = self._rotate(F.linear(states, weight[width:], key_value_bias), layout, heads=self.num_heads)
        return subset.layout.pad(query), *torch.chunk(layout.pad(key_value), 2, dim=-1)

    def _rotate(self, states: Tensor, layout: PackedRows, subset: TokenSubset | None = None, *, heads: int) -> Tensor:
        """The states of the tokens of ``layout``, or of its ``subset``, with the first ``heads`` heads rotated."""
        if self.rope_theta is None:
            return states
        columns = layout.columns(states.device)
        if subset is not None:
            columns = columns[subset.indices]
        width = self.qkv.in_features // self.num_heads
        return rotate(states, columns, heads=heads, width=width, theta=self.rope_theta)

    def _attention_mask(self, layout: PackedRows, subset: TokenSubset | None) -> Bool[Tensor, "#B #Q T"] | None:
        """True where a token may attend to another of its row; None where all may.

        Padding comes last in a row, so a causal mask needs no padding mask: no real token has padding before it.
        """
        columns = torch.arange(layout.width, device=self.qkv.weight.device)
        if self.window is not None and layout.width > self.window + 1:
            queries = columns[None] if subset is None else subset.find_columns(layout)
            return band(queries, columns, self.window, layout.mask)
        if not self.causal:
            return None if layout.mask is None else layout.mask[:, None]
        queries = columns[None] if subset is None else subset.find_columns(layout)
        return columns <= queries[..., None]

    def _split_heads(self, states: Float[Tensor, "B T H"]) -> Float[Tensor, "B N T D"]:
        rows, tokens, _ = states.shape
        return states.view(rows, tokens, self.num_heads, -1).transpose(1, 2)


class _Attend(torch.autograd.Function):
    """Scaled dot-product attention for training on a CPU: plain products, and a backward pass written by hand.

    torch's own CPU kernel has no dropout, and its backward pass reaches an eighth of the speed of a plain product.
    Forward and backward for 32 x 128 tokens, 4 heads of 64, bfloat16, one core: 15 ms here, 60 ms with torch.
    """

    @staticmethod
    def forward(
        ctx: cpu_kernels.Context,
        query: Float[Tensor, "B N Q D"],
        key: Float[Tensor, "B N T D"],
        value: Float[Tensor, "B N T D"],
        allowed: Bool[Tensor, "#B #Q T"] | None,
        rate: float,
    ) -> Float[Tensor, "B N Q D"]:
        shape = query.shape
        query, key, value = (part.flatten(0, 1).contiguous() for part in (query, key, value))
        scores = _product(query, key.transpose(1, 2), shape[-1] ** -0.5)
        mask = draw_mask(rate) if rate > 0 else None
        kept: Tensor | None
        if fused.applies(scores):
            probabilities, dropped = fused.softmax_dropout(scores, allowed, mask)
            kept = dropped  # 0 where an entry was dropped
        else:
            probabilities = _softmax(scores, allowed)
            kept = None if mask is None else find_kept(scores.shape, mask)
            dropped = _apply_dropout(probabilities, kept)
        ctx.save_for_backward(query, key, value, probabilities, kept)
        ctx.scale = keep_scale(rate)
        return _product(dropped, value, ctx.scale).view(shape)

    @staticmethod
    def backward(ctx: cpu_kernels.Context, gradient: Float[Tensor, "B N Q D"]) -> tuple[Tensor | None, ...]:
        query, key, value, probabilities, kept = ctx.saved_tensors
        heads, width = gradient.shape[:2], query.shape[-1]
        gradient = gradient.flatten(0, 1).contiguous()
        to_probabilities = _product(gradient, value.transpose(1, 2), ctx.scale)
        if fused.applies(probabilities):
            assert kept is not None
            dropped = kept
            to_scores = fused.softmax_dropout_backward_(to_probabilities, probabilities, dropped)
        else:
            # Dropout is applied again, so that no second (B, N, Q, T) tensor of floats is kept for this pass.
            dropped = _apply_dropout(probabilities, kept)
            if kept is not None:
                drop_(to_probabilities, kept)
            to_scores = torch._softmax_backward_data(to_probabilities, probabilities, -1, probabilities.dtype)
        to_value = _product(dropped.transpose(1, 2), gradient, ctx.scale)
        to_query = _product(to_scores, key, width**-0.5)
        to_key = _product(to_scores.transpose(1, 2), query, width**-0.5)
        return *(part.view(*heads, -1, width) for part in (to_query, to_key, to_value)), None, None


def _softmax(scores: Float[Tensor, "P Q T"], allowed: Bool[Tensor, "#B #Q T"] | None) -> Float[Tensor, "P Q T"]:
    """The softmax of each row over its allowed entries."""
    if allowed is not None:  # added in place: the scores are the largest tensor here
        bias = torch.zeros(allowed.shape, dtype=scores.dtype).masked_fill_(~allowed, float("-inf"))
        scores.view(len(allowed), -1, *scores.shape[1:]).add_(bias[:, None])
    return torch.softmax(scores, dim=-1)


def _apply_dropout(probabilities: Tensor, kept: Tensor | None) -> Tensor:
    return probabilities if kept is None else drop_(probabilities.clone(), kept)


def _product(left: Float[Tensor, "P X Y"], right: Float[Tensor, "P Y Z"], scale: float) -> Float[Tensor, "P X Z"]:
    """``scale * left @ right``. baddbmm applies the scale inside the kernel, which saves a pass over the result."""
    ignored = left.new_empty(1).expand(len(left), left.shape[1], right.shape[2])  # beta=0: never read
    return torch.baddbmm(ignored, left, right, beta=0, alpha=scale)
