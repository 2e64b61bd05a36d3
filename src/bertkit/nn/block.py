"""One layer of a Transformer encoder, normalised after each sub-layer ("post-LN", Vaswani et al. 2017, section 3.1)

    x = LayerNorm(x + dropout(attention(x)))
    y = LayerNorm(x + dropout(feed_forward(x)))

or before it ("pre-LN", Xiong et al., arXiv 2002.04745), which leaves the residual stream without a norm

    x = x + dropout(attention(LayerNorm(x)))
    y = x + feed_forward(LayerNorm(x))

Letters: L tokens in the packed list, M of them whose output is computed, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertkit.kernels import fused_training, passes
from bertkit.kernels.passes import Context, DropMask
from bertkit.nn.attention import SelfAttention
from bertkit.nn.dropout import Dropout, draw_mask
from bertkit.nn.feed_forward import FeedForward, GatedFeedForward
from bertkit.nn.packing import PackedRows, TokenSubset, select_tokens


class ResidualNorm(nn.LayerNorm):
    """``LayerNorm(states + dropout(update))``: adds the output of a sub-layer to the residual stream."""

    def __init__(self, width: int, *, eps: float, dropout: nn.Module) -> None:
        super().__init__(width, eps=eps)
        self.dropout = dropout

    def forward(self, states: Float[Tensor, "... H"], update: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:  # type: ignore[override]
        """The residual stream after the sub-layer whose output is ``update``."""
        if self._is_fused(states, update) and isinstance(self.dropout, Dropout):
            rate = self.dropout.rate if self.training else 0.0
            mask = draw_mask(rate) if rate > 0 else None
            normed: Tensor = _FusedResidualNorm.apply(  # type: ignore[no-untyped-call]
                states, update, self.weight, self.bias, self.eps, mask
            )
            return normed
        return super().forward(states + self.dropout(update))

    def _is_fused(self, states: Tensor, update: Tensor) -> bool:
        """Whether the inputs are those of a block that is trained on a CPU."""
        return (
            passes.trains_on_cpu(update)
            and fused_training.supports(update)
            and states.dtype == self.weight.dtype == torch.float32
            and self.bias is not None
            and states.ndim == 2
            and states.shape == update.shape
        )


class _FusedResidualNorm(torch.autograd.Function):
    """Dropout, residual and LayerNorm in one compiled sweep, forward and backward."""

    @staticmethod
    def forward(
        ctx: Context,
        states: Float[Tensor, "L H"],
        update: Float[Tensor, "L H"],
        weight: Float[Tensor, " H"],
        bias: Float[Tensor, " H"],
        eps: float,
        mask: DropMask | None,
    ) -> Float[Tensor, "L H"]:
        output, kept = fused_training.residual_norm(states.contiguous(), update.contiguous(), weight, bias, eps, mask)
        ctx.save_for_backward(*kept, weight)
        ctx.mask = mask
        ctx.dtype = update.dtype
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, gradient: Float[Tensor, "L H"]) -> tuple[Tensor | None, ...]:
        *kept, weight = ctx.saved_tensors
        normed = fused_training.NormedSum(*kept)
        return *fused_training.residual_norm_backward(gradient, normed, weight, ctx.mask, ctx.dtype), None, None


class PostNormBlock(nn.Module):
    """Self-attention, then feed-forward, each followed by dropout, residual connection and LayerNorm."""

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
        subset: TokenSubset | None = None,
    ) -> Float[Tensor, "M H"]:
        """The output of the block; ``layout`` says which tokens share a row and so attend to each other.

        With a ``subset`` only its tokens are computed; the others serve as keys and values.
        """
        selected = states if subset is None else select_tokens(states, subset.indices)
        attended = self.attention_norm(selected, self.attention(states, layout, subset))
        output: Tensor = self.feed_forward_norm(attended, self.feed_forward(attended))
        return output


class PreNormBlock(nn.Module):
    """Self-attention, then feed-forward, each after a norm and followed by the residual connection."""

    def __init__(
        self,
        *,
        attention: SelfAttention,
        attention_norm: nn.Module,
        attention_dropout: nn.Module,
        feed_forward: GatedFeedForward,
        feed_forward_norm: nn.Module,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = attention_norm
        self.attention_dropout = attention_dropout
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm

    def forward(
        self,
        states: Float[Tensor, "L H"],
        layout: PackedRows,
        subset: TokenSubset | None = None,
    ) -> Float[Tensor, "M H"]:
        """The output of the block, as that of ``PostNormBlock``."""
        selected = states if subset is None else select_tokens(states, subset.indices)
        attended = selected + self.attention_dropout(self.attention(self.attention_norm(states), layout, subset))
        output: Tensor = attended + self.feed_forward(self.feed_forward_norm(attended))
        return output
