"""The passes written by hand for CPU training stand aside for tracers and agree with torch in bfloat16."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertkit.nn import cpu_kernels
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


def test_they_apply_where_a_gradient_is_to_come() -> None:
    assert cpu_kernels.applies(torch.zeros(3, requires_grad=True))
    assert not cpu_kernels.applies(torch.zeros(3))
    assert not cpu_kernels.applies(torch.zeros(3, device="meta", requires_grad=True))


def test_a_traced_block_trains_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    block, states = make_block(0.1), torch.randn(39, H, requires_grad=True)
    assert not cpu_kernels.applies(states)
    torch.autograd.backward(block(states, PackedRows(3, 13)).sum())
    assert all(weight.grad is not None for weight in block.parameters())


def test_bfloat16_is_near_float32() -> None:
    block, wanted = make_block(0.0), torch.randn(19, H)
    layout = PackedRows.of(torch.arange(13) < torch.tensor([13, 5, 1])[:, None])

    def gradients(narrow: bool) -> torch.Tensor:
        torch.manual_seed(7)
        states = torch.randn(19, H, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = (block(states, layout) * wanted).sum()
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, [states, *block.parameters()])])

    exact, near = gradients(narrow=False), gradients(narrow=True)
    assert near.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(exact, near, dim=0).item() > 0.999
