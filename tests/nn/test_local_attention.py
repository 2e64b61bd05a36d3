"""Attention in a sliding window, in blocks and in full, against the formula with a mask."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention
from bertkit.nn.local_attention import band, cut_keys, cut_queries, join_blocks
from bertkit.nn.packing import PackedRows, TokenSubset

B, H, HEADS, WINDOW = 3, 12, 2, 2
REAL = torch.arange(13) < torch.tensor([13, 7, 2])[:, None]


def make_attention() -> SelfAttention:
    qkv, output = nn.Linear(H, 3 * H, bias=False), nn.Linear(H, H, bias=False)
    return SelfAttention(qkv=qkv, output=output, num_heads=HEADS, dropout=0.0, window=WINDOW)


def attend(attention: SelfAttention, states: Tensor, real: Tensor) -> Tensor:
    """(B, T, H): every real token attends to the real tokens at most ``WINDOW`` away, one token at a time."""
    query, key, value = attention.qkv(states).view(*states.shape[:2], 3, HEADS, -1).unbind(2)
    mixed = torch.zeros_like(states)
    for row, token in real.nonzero().tolist():
        near = slice(max(0, token - WINDOW), min(token + WINDOW + 1, int(real[row].sum())))
        scores = torch.einsum("nd,tnd->nt", query[row, token], key[row, near]) / math.sqrt(H // HEADS)
        mixed[row, token] = torch.einsum("nt,tnd->nd", scores.softmax(dim=-1), value[row, near]).flatten()
    output: Tensor = attention.output(mixed)
    return output


@pytest.mark.parametrize("width", [5, 8, 9, 13])
@pytest.mark.parametrize("training", [False, True])
def test_a_window_equals_the_formula_and_its_gradients(width: int, training: bool) -> None:
    """Rows of up to 8 tokens are computed in full, longer ones in blocks of 4."""
    attention, real = make_attention().train(training), REAL[:, :width]
    states = torch.randn(B, width, H, requires_grad=training)
    layout, upstream = PackedRows.of(real), torch.randn(B, width, H)
    ours = layout.pad(attention(layout.unpad(states), layout))
    expected = attend(attention, states, real)
    torch.testing.assert_close(ours[real], expected[real], rtol=0, atol=1e-5)
    if training:
        inputs = [states, *attention.parameters()]
        for left, right in zip(
            torch.autograd.grad((ours * upstream)[real].sum(), inputs),
            torch.autograd.grad((expected * upstream)[real].sum(), inputs),
            strict=True,
        ):
            torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_a_subset_has_the_same_window() -> None:
    attention, states = make_attention().eval(), torch.randn(B, 13, H)
    layout, positions = PackedRows.of(REAL), torch.zeros(B, 13, dtype=torch.bool)
    positions[0, [0, 9, 12]] = positions[1, 6] = positions[2, 1] = True
    subset = attention(layout.unpad(states), layout, TokenSubset.of(positions, REAL))
    torch.testing.assert_close(subset, attend(attention, states, REAL)[positions], rtol=0, atol=1e-5)


def test_cut_queries_are_joined_again_and_keys_surround_them() -> None:
    states = torch.arange(2 * 3 * 13 * 5.0).view(2, 3, 13, 5) + 1
    queries, keys = cut_queries(states, 2), cut_keys(states, 2)
    assert (queries.shape, keys.shape) == ((8, 3, 4, 5), (8, 3, 8, 5))
    assert torch.equal(join_blocks(queries, rows=2, width=13), states)
    assert torch.equal(keys[1], states[0, :, 2:10])
    assert not keys[0, :, :2].any()


def test_padding_may_attend_to_itself() -> None:
    allowed = band(torch.arange(7)[None], torch.arange(7), 1, torch.tensor([[True, True, False, False] + [False] * 3]))
    assert allowed[0, 0].tolist() == [True, True] + [False] * 5
    assert allowed[0, 6].tolist() == [False] * 6 + [True]
    assert allowed.any(dim=-1).all()
