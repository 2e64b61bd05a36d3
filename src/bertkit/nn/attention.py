"""Multi-head self-attention (Vaswani et al. 2017, section 3.2), bidirectional or causal.

    attention(Q, K, V) = softmax(Q K^T / sqrt(D)) V        per head

Letters: L tokens in the packed list, M of them whose output is computed; in padded rows: B examples, T tokens, Q of
them that are computed; H hidden width, W = 2 H or 3 H, N heads, D width of a head (H / N).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.attention_passes import attend_heads, attend_tokens, train_faster
from bertkit.nn.linear import linear
from bertkit.nn.local_attention import band, band_of_blocks, cut_keys, cut_queries, join_blocks
from bertkit.nn.packing import PackedRows, TokenSubset, select_tokens
from bertkit.nn.rotary import rotate
from bertkit.nn.varlen_attention import attend_packed, supports


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
        query, key_value = self._project(states, layout, subset)
        output_layout = layout if subset is None else subset.layout
        in_blocks = self.window is not None and subset is None and layout.width > 4 * self.window  # they are cheaper
        if train_faster(key_value, layout.width, self._head_width, self._rate) and not in_blocks:
            allowed = self._attention_mask(layout, subset)
            tokens = attend_tokens(query, key_value, output_layout, layout, allowed, self.num_heads, self._rate)
        elif self._reads_packed_rows(key_value, layout, subset):
            tokens = attend_packed(
                query,
                key_value,
                output_layout,
                layout,
                num_heads=self.num_heads,
                rate=self._rate,
                causal=self.causal,
                window=self.window,
            )
        else:
            padded = layout.pad(key_value)
            parts = padded.chunk(3, -1) if query is None else (output_layout.pad(query), *padded.chunk(2, -1))
            queries, keys, values = map(self._split_heads, parts)
            if in_blocks:
                context = self._attend_in_blocks(queries, keys, values, layout)
            elif self.causal and subset is None:  # torch has fused kernels for is_causal, but not for a causal mask
                context = F.scaled_dot_product_attention(queries, keys, values, dropout_p=self._rate, is_causal=True)
            else:
                context = self._attend(queries, keys, values, self._attention_mask(layout, subset))
            tokens = output_layout.unpad(context.transpose(1, 2).flatten(2))
        new_states: Tensor = self.output(tokens)
        return new_states

    def probabilities(self, states: Float[Tensor, "L H"], layout: PackedRows) -> Float[Tensor, "B N T T"]:
        """How much each token attends to each other, per head; ``forward`` returns none of them."""
        _, qkv = self._project(states, layout, None)
        query, key, _ = map(self._split_heads, layout.pad(qkv).chunk(3, dim=-1))
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        allowed = self._attention_mask(layout, None)
        if allowed is not None:
            scores = scores.masked_fill(~allowed[:, None], float("-inf"))
        probabilities: Tensor = scores.softmax(dim=-1)
        return probabilities

    def _reads_packed_rows(self, key_value: Tensor, layout: PackedRows, subset: TokenSubset | None) -> bool:
        """Whether the GPU's kernel computes this: it knows no columns of a subset, which order and window need."""
        is_known = subset is None or not (self.causal or self.window is not None)
        return is_known and supports(key_value, layout, self._head_width)

    @property
    def _head_width(self) -> int:
        return self.qkv.in_features // self.num_heads

    @property
    def _rate(self) -> float:
        return self.dropout if self.training else 0.0

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Bool[Tensor, "#B #Q T"] | None
    ) -> Float[Tensor, "B N Q D"]:
        if train_faster(query, key.shape[2], self._head_width, self._rate):
            return attend_heads(query, key, value, allowed, self._rate)
        mask = None if allowed is None else allowed[:, None]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=self._rate)

    def _attend_in_blocks(
        self, query: Tensor, key: Tensor, value: Tensor, layout: PackedRows
    ) -> Float[Tensor, "B N T D"]:
        """Attention to a window in time and memory proportional to T: 8,192 tokens in full would be 67 M scores."""
        window = self.window
        assert window is not None
        allowed = band_of_blocks(layout, window, query.device)
        context = self._attend(cut_queries(query, window), cut_keys(key, window), cut_keys(value, window), allowed)
        return join_blocks(context, rows=layout.rows, width=layout.width)

    def _project(
        self, states: Float[Tensor, "L H"], layout: PackedRows, subset: TokenSubset | None
    ) -> tuple[Float[Tensor, "M H"] | None, Float[Tensor, "L W"]]:
        """None, and queries, keys and values side by side; with a ``subset`` its queries, and keys and values."""
        if subset is None:
            return None, self._rotate(self.qkv(states), layout, heads=2 * self.num_heads)
        # The rows of the weight are those of the queries, then of the keys, then of the values.
        width = states.shape[-1]
        weight, bias = self.qkv.weight, self.qkv.bias
        query_bias, key_value_bias = (None, None) if bias is None else (bias[:width], bias[width:])
        query = linear(select_tokens(states, subset.indices), weight[:width], query_bias)
        query = self._rotate(query, layout, subset, heads=self.num_heads)
        return query, self._rotate(linear(states, weight[width:], key_value_bias), layout, heads=self.num_heads)

    def _rotate(self, states: Tensor, layout: PackedRows, subset: TokenSubset | None = None, *, heads: int) -> Tensor:
        """The states of the tokens of ``layout``, or of its ``subset``, with the first ``heads`` heads rotated."""
        if self.rope_theta is None:
            return states
        columns = layout.columns(states.device)
        if subset is not None:
            columns = columns[subset.indices]
        return rotate(states, columns, heads=heads, width=self._head_width, theta=self.rope_theta)

    def _attention_mask(self, layout: PackedRows, subset: TokenSubset | None) -> Bool[Tensor, "#B #Q T"] | None:
        """True where a token may attend to another of its row; None where all may.

        Padding comes last in a row, so a causal mask needs no padding mask: no real token has padding before it.
        """
        window = self.window if self.window is not None and layout.width > self.window + 1 else None
        if window is None and not self.causal:
            return None if layout.mask is None else layout.mask[:, None]
        columns = torch.arange(layout.width, device=self.qkv.weight.device)
        queries = columns[None] if subset is None else subset.find_columns(layout)
        return columns <= queries[..., None] if window is None else band(queries, columns, window, layout.mask)

    def _split_heads(self, states: Float[Tensor, "B T H"]) -> Float[Tensor, "B N T D"]:
        rows, tokens, _ = states.shape
        return states.view(rows, tokens, self.num_heads, -1).transpose(1, 2)
