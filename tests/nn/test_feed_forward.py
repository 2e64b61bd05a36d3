"""The feed-forward network against its formula."""

from __future__ import annotations

import math

import torch
from torch import nn

from bertkit.nn.feed_forward import FeedForward

B, T, H = 3, 13, 28


def test_feed_forward_equals_the_formula() -> None:
    inner, outer, states = nn.Linear(H, 37), nn.Linear(37, H), torch.randn(B, T, H)
    feed_forward = FeedForward(inner=inner, activation=nn.GELU(), outer=outer)
    hidden = inner(states)
    expected = outer(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))
    torch.testing.assert_close(feed_forward(states), expected, rtol=0, atol=1e-5)
