"""One layer of a Transformer encoder, normalised after each sub-layer ("post-LN").

Letters: L tokens in a list, M of them that are raised, H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.packing import PackedRows, TokenSubset, choose


class ResidualNorm(nn.LayerNorm):
    """``LayerNorm(states + dropout(update))``: how a sub-layer's output joins the stream."""

    def __init__(self, width: int, *, eps: float, dropout: nn.Module) -> None:
        super().__init__(width, eps=eps)
        self.dropout = dropout

    def forward(self, states: Float[Tensor, "... H"], update: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:  # type: ignore[override]
        """The stream after the sub-layer."""
        return super().forward(states + self.dropout(update))


class PostNormBlock(nn.Module):
    """Attention, then feed-forward, each followed by dropout, residual and LayerNorm."""

    def __init__(
        self,
        *,
        attention: SelfAttention,
        attention_norm: ResidualNorm,
        feed_forward: FeedForward,
        feed_forward_norm: ResidualNorm,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = attention_norm
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm

    def forward(
        self,
        states: Float[Tensor, "L H"],
        layout: PackedRows,
        choice: TokenSubset | None = None,
    ) -> Float[Tensor, "M H"]:
        """The states one layer higher; ``layout`` says which of them read each other.

        With a ``choice`` only its tokens are raised: the others are read by them and no more.
        """
        readers = states if choice is None else choose(states, choice.index)
        joined = self.attention_norm(readers, self.attention(states, layout, choice))
        raised: Tensor = self.feed_forward_norm(joined, self.feed_forward(joined))
        return raised
