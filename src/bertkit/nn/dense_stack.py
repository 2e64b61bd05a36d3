"""The blocks of BERT as plain operations on padded rows, which an exporter can follow.

Letters: B rows, T tokens of the longest row, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.block import PostNormBlock
from bertkit.nn.stack import BlockStack

_HIDDEN_SCORE = -1e9
"""Added to the scores of padding. Infinity would give NaN for a row without any token."""


class DenseStack(nn.Module):
    """``BlockStack`` without packing: every entry of the rows is computed, and padding is hidden by a mask."""

    def __init__(self, stack: BlockStack) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(stack)  # not its children(), which name a block once that several layers share

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"],
        positions: Bool[Tensor, "B T"] | None,
        *,
        output_hidden_states: bool,
        gradient_checkpointing: bool = False,
    ) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "B T H"], ...]]:
        """As ``BlockStack.forward``, but all positions are computed, and hidden states are not kept."""
        assert not output_hidden_states, "the states of the layers are not kept"
        scores = torch.zeros(mask.shape, dtype=states.dtype).masked_fill(~mask, _HIDDEN_SCORE)[:, None, None]
        for block in self.blocks:
            assert isinstance(block, PostNormBlock)
            attention = block.attention
            query, key, value = (
                part.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
                for part in attention.qkv(states).chunk(3, dim=-1)
            )
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=scores)
            states = block.attention_norm(states, attention.output(context.transpose(1, 2).flatten(2)))
            states = block.feed_forward_norm(states, block.feed_forward(states))
        return states, ()
