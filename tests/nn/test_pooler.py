"""Pooling: the [CLS] token, and the mean and maximum over the tokens of a row."""

from __future__ import annotations

import torch
from torch import nn

from bertkit.nn.pooler import Pooler, max_pool, mean_pool, pick_tokens

B, T, H = 3, 13, 28


def test_the_pooler_applies_a_layer_and_tanh_to_the_picked_tokens() -> None:
    states, dense = torch.randn(B, T, H), nn.Linear(H, H)
    pooled = Pooler(dense)(pick_tokens(states, torch.tensor([0, 12, 7])))
    torch.testing.assert_close(pooled, torch.tanh(dense(states[[0, 1, 2], [0, 12, 7]])))


def test_mean_and_maximum_ignore_padding() -> None:
    states = torch.tensor([[[-1.0, 4.0], [-3.0, 2.0], [9.0, 9.0]], [[5.0, -5.0], [9.0, 9.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert mean_pool(states, mask).tolist() == [[-2, 3], [5, -5]]
    assert max_pool(states, mask).tolist() == [[-1, 4], [5, -5]]
    states.requires_grad_()
    (max_pool(states, mask) + mean_pool(states, mask)).sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert states.grad.tolist() == [[[1.5, 1.5], [0.5, 0.5], [0, 0]], [[2, 2], [0, 0], [0, 0]]]


def test_a_row_without_tokens_is_pooled_to_zero() -> None:
    states = torch.randn(B, T, H, requires_grad=True)
    none = torch.zeros(B, T, dtype=torch.bool)
    pooled = torch.cat([mean_pool(states, none), max_pool(states, none)])
    assert not pooled.any()
    pooled.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert not states.grad.any()
