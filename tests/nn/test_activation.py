"""The activation functions by name, against their formulas."""

from __future__ import annotations

import math

import torch

from bertkit.nn.activation import ACTIVATIONS

STATES = torch.linspace(-4, 4, 99)


def test_gelu_with_erf_and_with_tanh_are_close_but_not_equal() -> None:
    with_erf, with_tanh = (ACTIVATIONS[name]()(STATES) for name in ("gelu", "gelu_tanh"))
    assert not torch.equal(with_erf, with_tanh)
    torch.testing.assert_close(with_erf, with_tanh, rtol=0, atol=1e-3)


def test_every_activation_equals_its_formula() -> None:
    inner = math.sqrt(2 / math.pi) * (STATES + 0.044715 * STATES**3)
    expected = {
        "gelu": 0.5 * STATES * (1 + torch.erf(STATES / math.sqrt(2))),
        "gelu_tanh": 0.5 * STATES * (1 + torch.tanh(inner)),
        "relu": STATES.clamp(min=0),
    }
    assert set(ACTIVATIONS) == set(expected)
    for name, values in expected.items():
        torch.testing.assert_close(ACTIVATIONS[name]()(STATES), values, rtol=0, atol=1e-6)
