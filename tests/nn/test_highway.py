"""The highway layer against its formula, also under autocast."""

from __future__ import annotations

import torch
from torch import nn

from bertkit.nn.highway import Highway


def make_highway() -> Highway:
    return Highway(carry=nn.Linear(5, 5), transform=nn.Linear(5, 5))


def test_a_highway_equals_the_formula_and_is_the_identity_with_a_closed_gate() -> None:
    highway, states = make_highway(), torch.randn(3, 7, 5)
    gate = 1 / (1 + torch.exp(-(states @ highway.carry.weight.T + highway.carry.bias)))
    transformed = (states @ highway.transform.weight.T + highway.transform.bias).clamp(min=0)
    torch.testing.assert_close(highway(states), gate * transformed + (1 - gate) * states, rtol=0, atol=1e-6)
    with torch.no_grad():
        highway.carry.bias.fill_(-100)
    assert torch.equal(highway(states), states)


def test_a_highway_accepts_float32_states_under_autocast() -> None:
    """Words come as float32 from their table, and under autocast products are bfloat16."""
    highway, states = make_highway(), torch.randn(3, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = highway(states)
    torch.testing.assert_close(mixed, highway(states), rtol=0, atol=0.02)
