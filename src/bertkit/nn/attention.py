"""Multi-head self-attention (Vaswani et al. 2017, section 3.2), bidirectional or causal.

Letters: L tokens in a list, M of them that read; laid out in rows: B examples, T tokens, Q that read; H hidden width,
N heads, D width of a head (H / N).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.cpu_kernels import trains_on_cpu
from bertkit.nn.dropout import draw_kept, drop_, keep_scale
from bertkit.nn.packing import PackedRows, TokenSubset, choose


class SelfAttention(nn.Module):
    """Every token reads every real token of its row, or if ``causal`` itself and those before it.

    ``qkv`` maps H to 3H, queries, keys and values in one product; ``output`` maps H to H. ``dropout`` is
    the rate on the attention probabilities, in training only.
    """

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
        choice: TokenSubset | None = None,
    ) -> Float[Tensor, "M H"]:
        """What the tokens of ``choice`` make of all ``states`` in their row; by default every token reads."""
        query, key, value = (self._split_heads(part) for part in self._project(states, layout, choice))
        rate = self.dropout if self.training else 0.0
        if trains_on_cpu(query):
            mixed = _Attend.apply(query, key, value, self._readable(layout, choice), rate)  # type: ignore[no-untyped-call]
        elif self.causal and choice is None:  # which the library has kernels for
            mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=True)
        else:
            readable = self._readable(layout, choice)
            mask = None if readable is None else readable[:, None]
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        readers = layout if choice is None else choice.layout
        new_states: Tensor = self.output(readers.collect(mixed.transpose(1, 2).flatten(2)))
        return new_states

    def _project(self, states: Tensor, layout: PackedRows, choice: TokenSubset | None) -> tuple[Tensor, ...]:
        if choice is None:
            return torch.chunk(layout.spread(self.qkv(states)), 3, dim=-1)
        width = states.shape[-1]
        weight, bias = self.qkv.weight, self.qkv.bias
        query = F.linear(choose(states, choice.index), weight[:width], bias[:width])
        read = F.linear(states, weight[width:], bias[width:])
        return choice.layout.spread(query), *torch.chunk(layout.spread(read), 2, dim=-1)

    def _readable(self, layout: PackedRows, choice: TokenSubset | None) -> Bool[Tensor, "#B #Q T"] | None:
        """Which token of its row each reader may read; None for every one.

        Padding comes last in a row, so no real token has any before it.
        """
        if not self.causal:
            return None if layout.mask is None else layout.mask[:, None]
        columns = torch.arange(layout.width, device=self.qkv.weight.device)
        readers = columns[None] if choice is None else choice.find_columns(layout)
        return columns <= readers[..., None]

    def _split_heads(self, states: Float[Tensor, "B T H"]) -> Float[Tensor, "B N T D"]:
        rows, tokens, _ = states.shape
        return states.view(rows, tokens, self.num_heads, -1).transpose(1, 2)


class _Attend(torch.autograd.Function):
    """Scaled dot-product attention for training on a CPU: plain products, and the backward pass by hand.

    torch's own CPU kernel knows no dropout, and its backward pass has an eighth of the speed of a plain
    product. 32 x 128 tokens, 4 heads of 64, bfloat16, one core, both passes: 15 ms, torch's 60.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Float[Tensor, "B N Q D"],
        key: Float[Tensor, "B N T D"],
        value: Float[Tensor, "B N T D"],
        readable: Bool[Tensor, "#B #Q T"] | None,
        rate: float,
    ) -> Float[Tensor, "B N Q D"]:
        shape = query.shape
        query, key, value = (part.flatten(0, 1).contiguous() for part in (query, key, value))
        scores = _product(query, key.transpose(1, 2), shape[-1] ** -0.5)
        if readable is not None:
            unread = torch.zeros(readable.shape, dtype=scores.dtype).masked_fill_(~readable, float("-inf"))
            scores.view(*shape[:3], -1).add_(unread[:, None])
        probabilities = torch.softmax(scores, dim=-1)
        kept = draw_kept(probabilities.shape, rate) if rate > 0 else None
        ctx.save_for_backward(query, key, value, probabilities, kept)
        ctx.scale = keep_scale(rate)
        return _product(_read(probabilities, kept), value, ctx.scale).view(shape)

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "B N Q D"]) -> tuple[Tensor | None, ...]:
        query, key, value, probabilities, kept = ctx.saved_tensors
        heads, width = gradient.shape[:2], query.shape[-1]
        gradient = gradient.flatten(0, 1).contiguous()
        to_value = _product(_read(probabilities, kept).transpose(1, 2), gradient, ctx.scale)
        to_read = _product(gradient, value.transpose(1, 2), ctx.scale)
        if kept is not None:
            drop_(to_read, kept)
        to_scores = torch._softmax_backward_data(to_read, probabilities, -1, probabilities.dtype)
        to_query = _product(to_scores, key, width**-0.5)
        to_key = _product(to_scores.transpose(1, 2), query, width**-0.5)
        return *(part.view(*heads, -1, width) for part in (to_query, to_key, to_value)), None, None


def _read(probabilities: Tensor, kept: Tensor | None) -> Tensor:
    return probabilities if kept is None else drop_(probabilities.clone(), kept)


def _product(left: Float[Tensor, "P X Y"], right: Float[Tensor, "P Y Z"], scale: float) -> Float[Tensor, "P X Z"]:
    """``scale * left @ right``, the scale inside the kernel."""
    ignored = left.new_empty(1).expand(len(left), left.shape[1], right.shape[2])
    return torch.baddbmm(ignored, left, right, beta=0, alpha=scale)
