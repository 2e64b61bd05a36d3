"""When the hand-written CPU passes apply, and a block trained with and without them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertkit.kernels import passes
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.dropout import Dropout
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.packing import PackedRows

H = 28


def make_block(rate: float) -> PostNormBlock:
    return PostNormBlock(
        attention=SelfAttention(qkv=nn.Linear(H, 3 * H), output=nn.Linear(H, H), num_heads=4, dropout=rate),
        attention_norm=ResidualNorm(H, eps=1e-12, dropout=Dropout(rate)),
        feed_forward=FeedForward(inner=nn.Linear(H, 37), activation=nn.GELU(), outer=nn.Linear(37, H)),
        feed_forward_norm=ResidualNorm(H, eps=1e-12, dropout=Dropout(rate)),
    ).train()


def test_they_apply_on_a_cpu_when_a_gradient_is_needed() -> None:
    assert passes.trains_on_cpu(torch.zeros(3, requires_grad=True))
    assert not passes.trains_on_cpu(torch.zeros(3))
    assert not passes.trains_on_cpu(torch.zeros(3, device="meta", requires_grad=True))


def test_they_do_not_apply_to_a_traced_block_which_still_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    block, states = make_block(0.1), torch.randn(39, H, requires_grad=True)
    assert not passes.trains_on_cpu(states)
    torch.autograd.backward(block(states, PackedRows(3, 13)).sum())
    assert all(weight.grad is not None for weight in block.parameters())


def test_bfloat16_gradients_are_close_to_float32() -> None:
    block, upstream = make_block(0.0), torch.randn(19, H)
    layout = PackedRows.of(torch.arange(13) < torch.tensor([13, 5, 1])[:, None])

    def gradients(narrow: bool) -> torch.Tensor:
        torch.manual_seed(7)
        states = torch.randn(19, H, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = (block(states, layout) * upstream).sum()
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, [states, *block.parameters()])])

    exact, rounded = gradients(narrow=False), gradients(narrow=True)
    assert rounded.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(exact, rounded, dim=0).item() > 0.999
