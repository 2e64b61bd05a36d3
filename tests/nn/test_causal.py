"""Causal attention: no token depends on a later one, which its gradients prove, and what it does is the formula."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention
from bertkit.nn.packing import PackedRows, TokenSubset

B, T, H, N = 3, 13, 28, 4
LENGTHS = torch.tensor([T, 5, 1])
PADDED = torch.arange(T) < LENGTHS[:, None]


def make_attention(dropout: float = 0.0) -> SelfAttention:
    qkv, output = nn.Linear(H, 3 * H), nn.Linear(H, H)
    return SelfAttention(qkv=qkv, output=output, num_heads=N, dropout=dropout, causal=True)


def attend(brick: SelfAttention, states: Tensor) -> Tensor:
    """One head and one reader at a time, who is given no more than it may read."""
    query, key, value = brick.qkv(states).unflatten(-1, (3, N, H // N)).unbind(-3)
    rows = []
    for reader in range(states.shape[1]):
        read = slice(0, reader + 1)
        scores = torch.einsum("bnd,btnd->bnt", query[:, reader], key[:, read]) / math.sqrt(H // N)
        rows.append(torch.einsum("bnt,btnd->bnd", scores.softmax(dim=-1), value[:, read]).flatten(1))
    return brick.output(torch.stack(rows, dim=1))  # type: ignore[no-any-return]


@pytest.fixture(params=["by hand", "by torch"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of the paths that attention has for training."""
    if request.param == "by torch":
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("real", [PADDED, torch.ones_like(PADDED)], ids=["padded", "whole"])
def test_it_is_the_formula_and_so_are_its_gradients(real: Tensor) -> None:
    brick, states = make_attention().train(), torch.randn(B, T, H, requires_grad=True)
    wanted, inputs, layout = torch.randn(B, T, H), [states, *brick.parameters()], PackedRows.of(real)
    ours = layout.pad(brick(layout.unpad(states), layout))
    plain = attend(brick, states)
    torch.testing.assert_close(ours[real], plain[real], rtol=0, atol=1e-5)
    gradients = torch.autograd.grad((ours * wanted)[real].sum(), inputs)
    for left, right in zip(gradients, torch.autograd.grad((plain * wanted)[real].sum(), inputs), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("real", [PADDED, torch.ones_like(PADDED)], ids=["padded", "whole"])
def test_no_output_depends_on_a_later_token(real: Tensor, chosen: bool) -> None:
    brick, states, layout = (
        make_attention(dropout=0.1).train(),
        torch.randn(B, T, H, requires_grad=True),
        PackedRows.of(real),
    )
    readers = real & (torch.arange(B * T).view(B, T) % 3 > 0) if chosen else real
    choice = TokenSubset.of(readers, real) if chosen else None
    read = brick(layout.unpad(states), layout, choice)[: int(readers.sum())]
    assert read.shape == (int(readers.sum()), H)
    for output, (row, reader) in zip(read, readers.nonzero().tolist(), strict=True):
        (gradient,) = torch.autograd.grad(output.sin().sum(), [states], retain_graph=True)
        depends = gradient.abs().sum(dim=-1) > 0
        assert not depends[row, reader + 1 :].any()
        assert not depends[torch.arange(B) != row].any()
        assert depends[row, reader]
        assert depends[row, : reader + 1].float().mean() > 0.5  # but for what dropout takes from all heads


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, T), min_size=1, max_size=4), st.integers(0, 2**31))
def test_a_chosen_reader_reads_what_it_would_among_all(lengths: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    readers = real & (torch.rand(real.shape, generator=generator) < 0.5)
    readers[:, 0] = True
    brick, layout = make_attention().eval(), PackedRows.of(real)
    states = layout.unpad(torch.randn(*real.shape, H, generator=generator))
    some = brick(states, layout, TokenSubset.of(readers, real))
    torch.testing.assert_close(some, layout.pad(brick(states, layout))[readers], rtol=0, atol=1e-5)


def test_all_later_tokens_may_change() -> None:
    brick, states = make_attention().eval(), torch.randn(B, T, H)
    changed = states.clone()
    changed[:, 7:] = torch.randn(B, T - 7, H)
    layout = PackedRows(B, T)
    one, other = (layout.pad(brick(each.flatten(0, 1), layout)) for each in (states, changed))
    torch.testing.assert_close(one[:, :7], other[:, :7], rtol=0, atol=1e-6)
    assert (one[:, 7:] != other[:, 7:]).any(dim=-1).all()
