from __future__ import annotations

import pytest
import torch
from tests.kernels.on_amx import needs_amx
from torch import nn
from torch.nn import functional as F

from bertkit.kernels.fused import is_compiled
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.inference_linear import (
    Activation,
    AmxInferenceLinear,
    CompiledLinear,
    PackedLinear,
    PlainLinear,
    activation_name,
    can_pack,
)

NAMES: list[Activation] = [None, *ACTIVATIONS]

needs_compiler = pytest.mark.skipif(not is_compiled(), reason="no C compiler with OpenMP on this machine")
needs_packing = pytest.mark.skipif(not can_pack(torch.float32), reason="this PyTorch has no oneDNN")


@needs_packing
@pytest.mark.parametrize("kind", [PlainLinear, PackedLinear])
@pytest.mark.parametrize("activation", NAMES)
@torch.no_grad()
def test_the_result_is_that_of_pytorch(kind: type[PackedLinear], activation: Activation) -> None:
    linear, states = nn.Linear(14, 37), torch.randn(5, 14)
    after = nn.Identity() if activation is None else ACTIVATIONS[activation]()
    expected = after(linear(states))
    torch.testing.assert_close(kind(linear, activation, dtype=torch.float32)(states), expected, rtol=0, atol=1e-5)
    if kind is PackedLinear and not can_pack(torch.bfloat16):
        return
    rounded = kind(linear, activation, dtype=torch.bfloat16)(states.bfloat16())
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), expected, rtol=0, atol=0.03)
    assert not torch.equal(rounded.float(), expected)


@needs_packing
@pytest.mark.parametrize("kind", [PlainLinear, PackedLinear])
@torch.no_grad()
def test_some_rows_are_some_outputs(kind: type[PackedLinear]) -> None:
    linear, states = nn.Linear(14, 37), torch.randn(5, 14)
    some = kind(linear, rows=slice(9, 20), dtype=torch.float32)(states)
    torch.testing.assert_close(some, linear(states)[:, 9:20], rtol=0, atol=1e-5)


@needs_packing
@pytest.mark.parametrize("kind", [PlainLinear, PackedLinear])
@torch.no_grad()
def test_a_residual_is_added(kind: type[PackedLinear]) -> None:
    linear, states, residual = nn.Linear(14, 37), torch.randn(5, 14), torch.randn(5, 37)
    before = residual.clone()
    found = kind(linear, dtype=torch.float32)(states, residual)
    torch.testing.assert_close(found, linear(states) + before, rtol=0, atol=1e-5)
    assert torch.equal(residual, before)
    if kind is PackedLinear and not can_pack(torch.bfloat16):
        return
    rounded = kind(linear, dtype=torch.bfloat16)(states.bfloat16(), residual.bfloat16())
    torch.testing.assert_close(rounded.float(), linear(states) + before, rtol=0, atol=0.05)


@needs_packing
@pytest.mark.parametrize("kind", [PlainLinear, PackedLinear])
@torch.no_grad()
def test_the_parameters_are_copies(kind: type[PackedLinear]) -> None:
    linear, states = nn.Linear(14, 37), torch.randn(2, 14)
    made = kind(linear, dtype=torch.float32)
    expected = made(states)
    for parameter in linear.parameters():
        parameter.zero_()
    assert torch.equal(made(states), expected)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_recognised_by_what_it_computes(name: str) -> None:
    states = torch.linspace(-3, 3, 50)
    found = ACTIVATIONS[activation_name(ACTIVATIONS[name]())]()
    assert torch.equal(found(states), ACTIVATIONS[name]()(states))
    assert not torch.equal(found(states), F.silu(states))


@needs_amx
@pytest.mark.parametrize("activation", NAMES)
@torch.no_grad()
def test_on_amx_the_result_is_that_of_pytorch(activation: Activation) -> None:
    linear, states, residual = nn.Linear(14, 37), torch.randn(5, 14), torch.randn(5, 37).bfloat16()
    after = nn.Identity() if activation is None else ACTIVATIONS[activation]()
    rows = slice(9, 20)
    some = AmxInferenceLinear(linear, activation, rows=rows)(states.bfloat16())
    torch.testing.assert_close(some.float(), after(linear(states)[:, rows]), rtol=0, atol=0.03)
    if activation is None:
        added = AmxInferenceLinear(linear)(states.bfloat16(), residual)
        torch.testing.assert_close(added.float(), linear(states) + residual, rtol=0, atol=0.05)


@needs_compiler
@pytest.mark.parametrize("activation", NAMES)
@torch.no_grad()
def test_the_compiled_result_is_that_of_pytorch(activation: Activation) -> None:
    linear, states, residual = nn.Linear(14, 37), torch.randn(5, 14), torch.randn(5, 37)
    after = nn.Identity() if activation is None else ACTIVATIONS[activation]()
    rows = slice(9, 20)
    some = CompiledLinear(linear, activation, rows=rows)
    torch.testing.assert_close(some(states), after(linear(states)[:, rows]), rtol=0, atol=1e-5)
    if activation is None:
        torch.testing.assert_close(
            CompiledLinear(linear)(states, residual), linear(states) + residual, rtol=0, atol=1e-5
        )
    before = some(states)
    linear.weight.zero_(), linear.bias.zero_()
    assert torch.equal(some(states), before)


@needs_amx
@torch.no_grad()
def test_on_amx_the_parameters_are_copies() -> None:
    linear, states = nn.Linear(14, 37), torch.randn(2, 14).bfloat16()
    made = AmxInferenceLinear(linear)
    expected = made(states)
    for parameter in linear.parameters():
        parameter.add_(5)
    assert torch.equal(made(states), expected)
