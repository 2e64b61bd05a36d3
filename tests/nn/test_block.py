"""A post-norm block against its formula."""

from __future__ import annotations

import torch
from tests.nn.reference_attention import H, attend, make_attention
from torch import Tensor, nn

from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.packing import PackedRows, TokenSubset

B, T = 3, 13


def make_block() -> PostNormBlock:
    norms = [ResidualNorm(H, eps=1e-12, dropout=nn.Identity()) for _ in range(2)]
    for norm in norms:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return PostNormBlock(
        attention=make_attention(),
        attention_norm=norms[0],
        feed_forward=FeedForward(inner=nn.Linear(H, 37), activation=nn.GELU(), outer=nn.Linear(37, H)),
        feed_forward_norm=norms[1],
    )


def normalise(norm: nn.LayerNorm, states: Tensor) -> Tensor:
    return nn.functional.layer_norm(states, (H,), norm.weight, norm.bias, norm.eps)


def test_a_block_normalises_after_each_sub_layer() -> None:
    block, states = make_block(), torch.randn(B, T, H)
    middle = normalise(block.attention_norm, states + attend(block.attention, states, None))
    expected = normalise(block.feed_forward_norm, middle + block.feed_forward(middle))
    output = block(states.flatten(0, 1), PackedRows(B, T)).view(B, T, H)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


def test_a_subset_has_the_output_that_it_has_among_all_tokens() -> None:
    block, states = make_block(), torch.randn(B * T, H)
    positions = torch.arange(B * T).view(B, T) % 5 == 1
    subset = TokenSubset.of(positions, torch.ones_like(positions))
    everything = block(states, PackedRows(B, T)).view(B, T, H)
    torch.testing.assert_close(block(states, PackedRows(B, T), subset), everything[positions], rtol=0, atol=1e-5)


def test_dropout_is_applied_to_the_update_only() -> None:
    states, update = torch.randn(B, T, H), torch.randn(B, T, H)
    norm = ResidualNorm(H, eps=1e-12, dropout=nn.Dropout(1.0)).train()
    torch.testing.assert_close(norm(states, update), normalise(norm, states))
