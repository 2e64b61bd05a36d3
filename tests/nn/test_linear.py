"""Layers that are trained with products on AMX, against torch's."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.on_amx import exact, needs_amx
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.linear import Linear, linear


def train(layer: nn.Linear, states: Tensor, gradient: Tensor) -> list[Tensor]:
    """The output of a layer in bfloat16, and all gradients, which are added to those that are there."""
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(states)
    output.backward(gradient.to(output.dtype))
    return [output.detach(), *(each.grad.clone() for each in (states, *layer.parameters()) if each.grad is not None)]


def test_an_empty_list_of_tokens_has_gradients() -> None:
    layer, states = Linear(40, 50), torch.empty(0, 40, requires_grad=True)
    output, *gradients = train(layer, states, torch.empty(0, 50))
    assert output.shape == (0, 50)
    assert [each.shape for each in gradients] == [(0, 40), (50, 40), (50,)]
    assert not any(each.any() for each in gradients)


def test_what_torch_refuses_is_refused() -> None:
    with torch.autocast("cpu", torch.bfloat16), pytest.raises((RuntimeError, TypeError)):
        linear(torch.randn(3, 30), torch.randn(8, 64))
    with torch.autocast("cpu", torch.bfloat16), pytest.raises((RuntimeError, TypeError)):
        linear(torch.randn(3, 64), torch.randn(8, 64), torch.randn(2))


@pytest.mark.parametrize("bias", [torch.ones(8).bfloat16(), torch.arange(16.0)[::2], torch.ones(1).expand(8)])
def test_a_bias_of_any_format_and_layout(bias: Tensor) -> None:
    states, weight = torch.randn(5, 64), torch.randn(8, 64)
    with torch.autocast("cpu", torch.bfloat16):
        found = linear(states, weight, bias)
    torch.testing.assert_close(found.float(), F.linear(states, weight, bias.float()), rtol=0.02, atol=0.1)


@pytest.mark.parametrize(("tokens", "outputs"), [(100, 1), (1, 50), (1, 1)])
def test_gradients_of_one_output_or_one_token(tokens: int, outputs: int) -> None:
    layer, gradient = Linear(40, outputs), torch.randn(outputs, tokens).T
    plain = nn.Linear(40, outputs)
    plain.load_state_dict(layer.state_dict())
    states = torch.randn(tokens, 40, requires_grad=True)
    found = train(layer, states, gradient)
    states.grad = None
    for one, other in zip(found, train(plain, states, gradient), strict=True):
        torch.testing.assert_close(one.float(), other.float(), rtol=0.02, atol=0.1)


def test_a_tracer_sees_torchs_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.jit, "is_tracing", lambda: True)
    layer, states = Linear(40, 50), torch.randn(7, 40)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(states), F.linear(states, layer.weight, layer.bias))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("frozen", [(), ("weight",), ("weight", "bias"), ("bias",)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_is_trained_as_torchs(bias: bool, frozen: tuple[str, ...], dtype: torch.dtype) -> None:
    layer, states = Linear(40, 50, bias=bias), torch.randn(70, 40).to(dtype).requires_grad_()
    plain = nn.Linear(40, 50, bias=bias)
    plain.load_state_dict(layer.state_dict())
    for each in (layer, plain):
        for name, parameter in each.named_parameters():
            parameter.requires_grad_(name not in frozen)
    gradient = torch.randn(70, 50)
    found = train(layer, states, gradient)
    states.grad = None
    for one, other in zip(found, train(plain, states, gradient), strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.float(), other.float(), rtol=0.02, atol=0.05)


@needs_amx
@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_gradients_do_not_depend_on_the_default_number_format(default: torch.dtype) -> None:
    layer, states, gradient = Linear(64, 6), torch.randn(8, 64), torch.randn(8, 6)
    expected = train(layer, states, gradient)
    for each in layer.parameters():
        each.grad = None
    torch.set_default_dtype(default)
    try:
        found = train(layer, states, gradient)
    finally:
        torch.set_default_dtype(torch.float32)
    for one, other in zip(expected, found, strict=True):
        assert torch.equal(one, other)


@needs_amx
def test_gradients_of_weights_are_not_rounded_to_bfloat16() -> None:
    layer, states, gradient = Linear(40, 50), torch.randn(70, 40, requires_grad=True), torch.randn(70, 50)
    *_, to_states, to_weight, to_bias = train(layer, states, gradient)
    rounded = gradient.bfloat16()
    torch.testing.assert_close(to_weight.double(), exact(rounded.T, states.detach()), rtol=0, atol=1e-4)
    torch.testing.assert_close(to_states.double(), exact(rounded, layer.weight.detach()), rtol=0, atol=1e-4)
    torch.testing.assert_close(to_bias.double(), rounded.double().sum(0), rtol=0, atol=1e-4)


def test_without_autocast_the_result_is_torchs_bit_for_bit() -> None:
    states, weight, bias = torch.randn(7, 40), torch.randn(50, 40), torch.randn(50)
    assert torch.equal(linear(states, weight, bias), F.linear(states, weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear(states[None], weight, bias), F.linear(states[None], weight, bias))


@needs_amx
def test_second_derivatives_are_refused() -> None:
    layer, states = Linear(32, 32), torch.randn(8, 32, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        (gradient,) = torch.autograd.grad(layer(states).float().square().sum(), states, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(gradient.sum())
