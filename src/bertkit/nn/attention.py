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

from bertkit.nn import cpu_kernels
from bertkit.nn.dropout import drop_, keep_scale, sample_kept
from bertkit.nn.packing import PackedRows, TokenSubset, select_tokens


class SelfAttention(nn.Module):
    """Every token attends to every real token of its row, or if ``causal`` to itself and the tokens before it.

    ``qkv`` maps H to 3H, queries, keys and values in one product; ``output`` maps H to H. ``dropout`` is the rate on
    the attention probabilities, in training only.
    """

    STACKED: ClassVar[Mapping[str, int]] = {"qkv": 3}

    def __init__(
        self, *, qkv: nn.Linear, output: nn.Linear, num_heads: int, dropout: float, causal: bool = False
    ) -> None:
        super().__init__()
        self.qkv = qkv
        self.output = output
        self.num_heads = num_heads
        self.dropout = dropout
        self.causal = causal

    def forward(
        self,
        states: Float[Tensor, "L H"],
        layout: PackedRows,
        subset: TokenSubset | None = None,
    ) -> Float[Tensor, "M H"]:
        """The attention output of the tokens of ``subset``, by default of all; keys and values are all ``states``."""
        query, key, value = (self._split_heads(part) for part in self._project(states, layout, subset))
        rate = self.dropout if self.training else 0.0
        if cpu_kernels.applies(query):
            allowed = self._attention_mask(layout, subset)
            mixed = _Attend.apply(query, key, value, allowed, rate)  # type: ignore[no-untyped-call]
        elif self.causal and subset is None:  # torch has fused kernels for is_causal, but not for a causal mask
            mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=True)
        else:
            allowed = self._attention_mask(layout, subset)
            mask = None if allowed is None else allowed[:, None]
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        output_layout = layout if subset is None else subset.layout
        new_states: Tensor = self.output(output_layout.unpad(mixed.transpose(1, 2).flatten(2)))
        return new_states

    def _project(self, states: Tensor, layout: PackedRows, subset: TokenSubset | None) -> tuple[Tensor, ...]:
        """Queries (B, Q, H), keys and values (B, T, H), padded. Only the tokens of ``subset`` need a query."""
        if subset is None:
            return torch.chunk(layout.pad(self.qkv(states)), 3, dim=-1)
        # The rows of the weight are those of the queries, then of the keys, then of the values.
        width = states.shape[-1]
        weight, bias = self.qkv.weight, self.qkv.bias
        query = F.linear(select_tokens(states, subset.indices), weight[:width], bias[:width])
        key_value = F.linear(states, weight[width:], bias[width:])
        return subset.layout.pad(query), *torch.chunk(layout.pad(key_value), 2, dim=-1)

    def _attention_mask(self, layout: PackedRows, subset: TokenSubset | None) -> Bool[Tensor, "#B #Q T"] | None:
        """True where a token may attend to another of its row; None where all may.

        Padding comes last in a row, so a causal mask needs no padding mask: no real token has padding before it.
        """
        if not self.causal:
            return None if layout.mask is None else layout.mask[:, None]
        columns = torch.arange(layout.width, device=self.qkv.weight.device)
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
        if allowed is not None:  # added in place: the scores are the largest tensor here
            bias = torch.zeros(allowed.shape, dtype=scores.dtype).masked_fill_(~allowed, float("-inf"))
            scores.view(*shape[:3], -1).add_(bias[:, None])
        probabilities = torch.softmax(scores, dim=-1)
        kept = sample_kept(probabilities.shape, rate) if rate > 0 else None
        ctx.save_for_backward(query, key, value, probabilities, kept)
        ctx.scale = keep_scale(rate)
        return _product(_apply_dropout(probabilities, kept), value, ctx.scale).view(shape)

    @staticmethod
    def backward(ctx: cpu_kernels.Context, gradient: Float[Tensor, "B N Q D"]) -> tuple[Tensor | None, ...]:
        query, key, value, probabilities, kept = ctx.saved_tensors
        heads, width = gradient.shape[:2], query.shape[-1]
        gradient = gradient.flatten(0, 1).contiguous()
        # Dropout is applied again, so that no second (B, N, Q, T) tensor is kept for this pass.
        to_value = _product(_apply_dropout(probabilities, kept).transpose(1, 2), gradient, ctx.scale)
        to_probabilities = _product(gradient, value.transpose(1, 2), ctx.scale)
        if kept is not None:
            drop_(to_probabilities, kept)
        to_scores = torch._softmax_backward_data(to_probabilities, probabilities, -1, probabilities.dtype)
        to_query = _product(to_scores, key, width**-0.5)
        to_key = _product(to_scores.transpose(1, 2), query, width**-0.5)
        return *(part.view(*heads, -1, width) for part in (to_query, to_key, to_value)), None, None


def _apply_dropout(probabilities: Tensor, kept: Tensor | None) -> Tensor:
    return probabilities if kept is None else drop_(probabilities.clone(), kept)


def _product(left: Float[Tensor, "P X Y"], right: Float[Tensor, "P Y Z"], scale: float) -> Float[Tensor, "P X Z"]:
    """``scale * left @ right``. baddbmm applies the scale inside the kernel, which saves a pass over the result."""
    ignored = left.new_empty(1).expand(len(left), left.shape[1], right.shape[2])  # beta=0: never read
    return torch.baddbmm(ignored, left, right, beta=0, alpha=scale)
