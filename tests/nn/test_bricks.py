"""Each brick against the formula it stands for, written out the slow way."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.embeddings import Embeddings
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.init import fill_sinusoids
from bertkit.nn.packing import PackedRows, TokenSubset
from bertkit.nn.pooler import Pooler, max_pool, mean_pool, pick_tokens

B, T, H, N = 3, 13, 28, 4


def make_attention(dropout: float = 0.0) -> SelfAttention:
    return SelfAttention(qkv=nn.Linear(H, 3 * H), output=nn.Linear(H, H), num_heads=N, dropout=dropout)


def attend(brick: SelfAttention, states: Tensor, mask: Tensor | None) -> Tensor:
    """Attention one row and one head at a time."""
    query, key, value = brick.qkv(states).split(H, dim=-1)
    width = H // N
    mixed = torch.zeros_like(states)
    for row in range(len(states)):
        for head in range(N):
            part = slice(head * width, (head + 1) * width)
            scores = query[row, :, part] @ key[row, :, part].T / math.sqrt(width)
            if mask is not None:
                scores = scores.masked_fill(~mask[row], float("-inf"))
            mixed[row, :, part] = scores.softmax(dim=-1) @ value[row, :, part]
    return brick.output(mixed)  # type: ignore[no-any-return]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_attention_is_the_formula(padded: bool, training: bool) -> None:
    brick, states = make_attention().train(training), torch.randn(B, T, H)
    mask = torch.arange(T) < torch.tensor([T, 5, 1])[:, None] if padded else None
    layout = PackedRows.of(torch.ones(B, T, dtype=torch.bool) if mask is None else mask)
    expected = layout.unpad(attend(brick, states, mask))
    torch.testing.assert_close(brick(layout.unpad(states), layout), expected, rtol=0, atol=1e-5)


def test_readers_read_all_and_are_read_by_none() -> None:
    brick, states = make_attention().eval(), torch.randn(B, T, H)
    mask = torch.arange(T) < torch.tensor([T, 5, 1])[:, None]
    layout, wanted = PackedRows.of(mask), torch.zeros(B, T, dtype=torch.bool)
    wanted[0, [7, 2]] = wanted[1, 4] = wanted[2, 0] = True
    some = brick(layout.unpad(states), layout, TokenSubset.of(wanted, mask))
    torch.testing.assert_close(some, attend(brick, states, mask)[wanted], rtol=0, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_attention_gradients_are_those_of_the_formula(training: bool) -> None:
    brick, states = make_attention().train(training), torch.randn(B, T, H, requires_grad=True)
    mask = torch.arange(T) < torch.tensor([T, 5, 1])[:, None]
    wanted = torch.randn(B, T, H)
    inputs = [states, *brick.parameters()]
    layout = PackedRows.of(mask)
    ours = torch.autograd.grad((layout.pad(brick(layout.unpad(states), layout)) * wanted).sum(), inputs)
    plain = torch.autograd.grad((attend(brick, states, mask)[mask] * wanted[mask]).sum(), inputs)
    for left, right in zip(ours, plain, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_attention_dropout_keeps_the_expectation() -> None:
    states = torch.randn(1, T, H)
    brick = make_attention(dropout=0.3).train()
    # Values alone pass through: the mean over many draws is the state without dropout.
    noisy = brick(states.expand(4000, T, H).flatten(0, 1), PackedRows(4000, T)).view(4000, T, H).mean(dim=0)
    exact = brick.eval()(states[0], PackedRows(1, T))
    torch.testing.assert_close(noisy, exact, rtol=0, atol=0.03)


def test_rows_are_pooled_over_their_own_tokens() -> None:
    states = torch.tensor([[[-1.0, 4.0], [-3.0, 2.0], [9.0, 9.0]], [[5.0, -5.0], [9.0, 9.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert mean_pool(states, mask).tolist() == [[-2, 3], [5, -5]]
    assert max_pool(states, mask).tolist() == [[-1, 4], [5, -5]]
    states.requires_grad_()
    (max_pool(states, mask) + mean_pool(states, mask)).sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert states.grad.tolist() == [[[1.5, 1.5], [0.5, 0.5], [0, 0]], [[2, 2], [0, 0], [0, 0]]]


def test_a_row_without_tokens_is_pooled_to_nothing() -> None:
    states = torch.randn(B, T, H, requires_grad=True)
    none = torch.zeros(B, T, dtype=torch.bool)
    pooled = torch.cat([mean_pool(states, none), max_pool(states, none)])
    assert not pooled.any()
    pooled.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert not states.grad.any()


def test_feed_forward_and_pooler() -> None:
    inner, outer, states = nn.Linear(H, 37), nn.Linear(37, H), torch.randn(B, T, H)
    brick = FeedForward(inner=inner, activation=nn.GELU(), outer=outer)
    hidden = inner(states)
    expected = outer(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))
    torch.testing.assert_close(brick(states), expected, rtol=0, atol=1e-5)
    dense = nn.Linear(H, H)
    torch.testing.assert_close(
        Pooler(dense)(pick_tokens(states, torch.tensor([0, 12, 7]))), torch.tanh(dense(states[[0, 1, 2], [0, 12, 7]]))
    )


def test_gelu_by_erf_and_by_tanh_are_near_and_not_equal() -> None:
    states = torch.linspace(-4, 4, 99)
    by_erf, by_tanh = (ACTIVATIONS[name]()(states) for name in ("gelu", "gelu_tanh"))
    assert not torch.equal(by_erf, by_tanh)
    torch.testing.assert_close(by_erf, by_tanh, rtol=0, atol=1e-3)


def test_embeddings_are_a_normalised_sum() -> None:
    word, position, segment = nn.Embedding(99, H), nn.Embedding(37, H), nn.Embedding(2, H)
    brick = Embeddings(
        word=word, position=position, segment=segment, norm=nn.LayerNorm(H, eps=1e-12), dropout=nn.Identity()
    )
    ids, segments = torch.randint(0, 99, (B, T)), torch.randint(0, 2, (B, T))
    summed = word(ids) + position(torch.arange(T)) + segment(segments)
    centred = summed - summed.mean(dim=-1, keepdim=True)
    expected = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-12).sqrt()
    torch.testing.assert_close(brick(ids, segments), expected, rtol=0, atol=1e-5)


def test_block_normalises_after_each_sub_layer() -> None:
    attention = make_attention()
    feed_forward = FeedForward(inner=nn.Linear(H, 37), activation=nn.GELU(), outer=nn.Linear(37, H))
    norms = [ResidualNorm(H, eps=1e-12, dropout=nn.Identity()) for _ in range(2)]
    for norm in norms:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    block = PostNormBlock(
        attention=attention, attention_norm=norms[0], feed_forward=feed_forward, feed_forward_norm=norms[1]
    )
    states = torch.randn(B, T, H)

    def normalise(norm: nn.LayerNorm, states: Tensor) -> Tensor:
        return nn.functional.layer_norm(states, (H,), norm.weight, norm.bias, norm.eps)

    middle = normalise(norms[0], states + attend(attention, states, None))
    expected = normalise(norms[1], middle + feed_forward(middle))
    raised = block(states.flatten(0, 1), PackedRows(B, T)).view(B, T, H)
    torch.testing.assert_close(raised, expected, rtol=0, atol=1e-5)


def test_sinusoids_make_the_token_before_one_linear_map() -> None:
    table = torch.empty(37, H)
    fill_sinusoids(table, 0.5)
    torch.testing.assert_close(table.square().mean().sqrt(), torch.tensor(0.5), rtol=0.05, atol=0)
    shift = torch.linalg.lstsq(table[1:].double(), table[:-1].double()).solution
    torch.testing.assert_close(table[1:].double() @ shift, table[:-1].double(), rtol=0, atol=1e-4)
