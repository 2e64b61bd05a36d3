"""A stack of BERT blocks with rows of different lengths, and the layers that may replace its linear ones."""

from __future__ import annotations

import torch
from tests.nn.reference_attention import H, make_attention
from torch import Tensor, nn

from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.stack import BlockStack

T = 13
LENGTHS = (T, 5, 5, 1)
MASK = torch.arange(T) < torch.tensor(LENGTHS)[:, None]


def make_stack(layers: int = 3) -> BlockStack:
    blocks = (
        PostNormBlock(
            attention=make_attention(0.0),
            attention_norm=ResidualNorm(H, eps=1e-12, dropout=nn.Identity()),
            feed_forward=FeedForward(inner=nn.Linear(H, 37), activation=nn.GELU(), outer=nn.Linear(37, H)),
            feed_forward_norm=ResidualNorm(H, eps=1e-12, dropout=nn.Identity()),
        )
        for _ in range(layers)
    )
    return BlockStack(blocks).eval()


@torch.no_grad()
def run(stack: nn.Module, states: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
    output: Tensor = stack(states, mask, positions, output_hidden_states=False, gradient_checkpointing=False)[0]
    return output
