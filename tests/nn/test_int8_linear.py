from __future__ import annotations

import pytest
import torch
from tests.nn.inference_blocks import make_stack
from tests.nn.reference_attention import H
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.kernels.fused import is_compiled
from bertkit.nn import int8_linear
from bertkit.nn.block import PostNormBlock
from bertkit.nn.inference_linear import can_pack
from bertkit.nn.int8_linear import InputRange, Int8Linear, Int8Maker, PackedInt8Linear, calibrate
from bertkit.nn.stack import BlockStack

LAYERS = [
    pytest.param(Int8Linear, marks=pytest.mark.skipif(not is_compiled(), reason="no C compiler with OpenMP here")),
    pytest.param(
        PackedInt8Linear, marks=pytest.mark.skipif(not can_pack(torch.float32), reason="this PyTorch has no oneDNN")
    ),
]
for_both_layers = pytest.mark.parametrize("layer", LAYERS)
Layer = type[Int8Linear] | type[PackedInt8Linear]


def relative_error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@for_both_layers
@pytest.mark.parametrize("after_activation", [False, True])
@torch.no_grad()
def test_the_error_is_that_of_eight_bits(layer: Layer, after_activation: bool) -> None:
    linear, states = nn.Linear(64, 48), torch.randn(50, 64)
    if after_activation:
        states = F.gelu(states)
    made = layer(linear, "gelu", inputs=InputRange(states.abs().amax(dim=0), after_activation))
    error = relative_error(made(states), F.gelu(linear(states)))
    assert 1e-4 < error < 0.02


@for_both_layers
@torch.no_grad()
def test_the_integers_are_multiplied_exactly(layer: Layer) -> None:
    """Where the processor adds two products in 16 bits, no two weights may be so large that their sum is cut off."""
    linear, states = nn.Linear(63, 48), torch.rand(50, 63) + 5
    linear.weight.abs_()
    made = layer(linear, inputs=InputRange(states.abs().amax(dim=0), False))
    assert relative_error(made(states), linear(states)) < 0.005


@pytest.mark.parametrize("weight", [torch.randn(48, 63), torch.rand(48, 64), -torch.rand(48, 63)])
def test_no_two_neighbours_are_too_large_where_their_products_are_added_in_16_bits(
    weight: Tensor,
) -> None:
    rounded = (127 * weight / int8_linear._find_largest(weight, in_pairs=True)[:, None]).round()
    pairs = F.pad(rounded, (0, weight.shape[1] % 2)).reshape(48, -1, 2)
    assert pairs.clamp(min=0).sum(dim=2).amax() <= 128
    assert pairs.clamp(max=0).sum(dim=2).amin() >= -128
    assert (rounded.abs().amax(dim=1) > 60).all(), "no more is lost than has to be"
    assert torch.equal(int8_linear._find_largest(weight, in_pairs=False), weight.abs().amax(dim=1))


@for_both_layers
@torch.no_grad()
def test_a_residual_is_added(layer: Layer) -> None:
    linear, states, residual = nn.Linear(64, 48), torch.randn(50, 64), torch.randn(50, 48)
    made = layer(linear, inputs=InputRange(states.abs().amax(dim=0), False))
    torch.testing.assert_close(made(states, residual), made(states) + residual, rtol=0, atol=0)


@for_both_layers
@torch.no_grad()
def test_an_input_a_hundred_times_larger_than_the_others_costs_little(layer: Layer) -> None:
    linear, states = nn.Linear(64, 48), torch.randn(50, 64)
    states[:, 7] *= 100
    linear.weight[:, 7] /= 100
    smoothed = layer(linear, inputs=InputRange(states.abs().amax(dim=0), False))
    unsmoothed = layer(linear, inputs=InputRange(linear.weight.abs().amax(dim=0), False))
    expected = linear(states)
    assert relative_error(smoothed(states), expected) < 0.02 < relative_error(unsmoothed(states), expected)


@for_both_layers
@torch.no_grad()
def test_a_token_does_not_depend_on_the_others(layer: Layer) -> None:
    linear, states = nn.Linear(64, 48), torch.randn(50, 64)
    made = layer(linear, inputs=InputRange(states.abs().amax(dim=0), False))
    together = made(torch.cat([states, 1000 * states]))[:50]
    assert torch.equal(together, made(states))
    assert made(torch.zeros(2, 64)).isfinite().all()


@pytest.mark.skipif(not is_compiled() or not can_pack(torch.float32), reason="there is one kind of products")
@torch.no_grad()
def test_both_products_give_the_same() -> None:
    linear, states, residual = nn.Linear(64, 48), torch.randn(50, 64), torch.randn(50, 48)
    inputs = InputRange(states.abs().amax(dim=0), False)
    for activation in ("gelu", "relu", None):
        own, packed = (layer(linear, activation, inputs=inputs) for layer in (Int8Linear, PackedInt8Linear))
        added = residual if activation is None else None
        torch.testing.assert_close(own(states, added), packed(states, added), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_calibration_finds_the_inputs_of_every_layer() -> None:
    stack, states = make_stack(), torch.randn(3, 5, H)
    ranges = calibrate(stack, states)
    linears = [module for module in stack.modules() if isinstance(module, nn.Linear)]
    assert set(ranges) == set(linears)
    blocks = [block for block in stack if isinstance(block, PostNormBlock)]
    small = calibrate(stack, states / 100)
    assert [linear for linear in linears if small[linear].after_activation] == [
        block.feed_forward.outer for block in blocks
    ], "inputs that are small by chance are not those of an activation"
    first = blocks[0]
    assert torch.equal(ranges[first.attention.qkv].highest, states.abs().amax(dim=(0, 1)))
    assert [linear for linear in linears if ranges[linear].after_activation] == [
        block.feed_forward.outer for block in blocks
    ]
    query = first.attention.qkv
    twice = calibrate(BlockStack([first, first]), states)[query].highest
    assert torch.equal(twice, calibrate(BlockStack([first]), states)[query].highest.maximum(twice)), "the larger of two"
    layer = Int8Linear if is_compiled() else PackedInt8Linear
    assert Int8Maker(layer, ranges)(first.attention.qkv, rows=slice(0, H))(states[0]).shape == (5, H)
