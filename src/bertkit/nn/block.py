"""One layer of a Transformer encoder, normalised after each sub-layer ("post-LN").

Letters: B examples, T tokens, Q of them that are raised, H hidden width.
"""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention
from bertkit.nn.feed_forward import FeedForward


class ResidualNorm(nn.LayerNorm):
    """``LayerNorm(states + dropout(update))``: how a sub-layer's output joins the stream."""

    def __init__(self, width: int, *, eps: float, dropout: nn.Module) -> None:
        super().__init__(width, eps=eps)
        self.dropout = dropout

    def forward(self, states: Float[Tensor, "B T H"], update: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:  # type: ignore[override]
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
        states: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"] | None,
        places: Int[Tensor, "B Q"] | None = None,
    ) -> Float[Tensor, "B Q H"]:
        """The states one layer higher; ``mask`` as in SelfAttention.

        With ``places``, row numbers of the flattened states, only those are raised: the others are read
        by them and no more.
        """
        readers = states
        if places is not None:
            readers = states.flatten(0, 1).index_select(0, places.flatten()).view(*places.shape, -1)
        joined = self.attention_norm(readers, self.attention(states, mask, None if places is None else readers))
        raised: Tensor = self.feed_forward_norm(joined, self.feed_forward(joined))
        return raised
