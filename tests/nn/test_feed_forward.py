"""The feed-forward network against its formula."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.linear import Linear

B, T, H = 3, 13, 28


def test_feed_forward_equals_the_formula() -> None:
    inner, outer, states = nn.Linear(H, 37), nn.Linear(37, H), torch.randn(B, T, H)
    feed_forward = FeedForward(inner=inner, activation=nn.GELU(), outer=outer)
    hidden = inner(states)
    expected = outer(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))
    torch.testing.assert_close(feed_forward(states), expected, rtol=0, atol=1e-5)


def train(feed_forward: FeedForward, states: Tensor, gradient: Tensor) -> list[Tensor]:
    """The output in bfloat16, and the gradients of the states and of what is trained."""
    with torch.autocast("cpu", torch.bfloat16):
        output = feed_forward(states)
    output.backward(gradient.to(output.dtype))
    trained = [each for each in (states, *feed_forward.parameters()) if each.requires_grad]
    return [output.detach(), *(each.grad for each in trained if each.grad is not None)]


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("frozen", [(), ("inner.weight", "inner.bias"), ("outer.weight",)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_layers_are_trained_as_torchs(activation: str, frozen: tuple[str, ...], dtype: torch.dtype) -> None:
    """On a processor with AMX by one pass, if GELU is the exact one."""
    results = []
    for make in (Linear, nn.Linear):
        torch.manual_seed(0)
        layers = {"inner": make(H, 45), "outer": make(45, H)}
        feed_forward = FeedForward(activation=ACTIVATIONS[activation](), **layers)
        for name in frozen:
            feed_forward.get_parameter(name).requires_grad_(False)
        states = torch.randn(T, H).to(dtype).requires_grad_()
        results.append(train(feed_forward, states, torch.randn(T, H)))
    assert len(results[0]) == 6 - len(frozen)
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.float(), other.float(), rtol=0.02, atol=0.02)
