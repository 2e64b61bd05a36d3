"""The compiled products of 8-bit integers against sums of 64-bit ones, and the rounding around them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bertkit.kernels import fused
from bertkit.kernels.int8_products import dequantize_, multiply, pack, pairs_saturate, quantize

pytestmark = pytest.mark.skipif(not fused.is_compiled(), reason="no C compiler with OpenMP on this machine")

SHAPES = [(1, 1, 1), (5, 7, 3), (25, 63, 49), (24, 384, 100), (131, 96, 97), (300, 1536, 50), (3, 70_000, 2)]
"""Rows, inputs and outputs. The second last has rows enough for several parts, the last more inputs than a part has
numbers."""


def draw_weight(outputs: int, inputs: int) -> Tensor:
    """Integers of which no two neighbours are too large for any processor."""
    return torch.randint(-64, 65, (outputs, inputs), dtype=torch.int8)


def expect(states: Tensor, weight: Tensor, scale: Tensor, bias: Tensor, factor: Tensor, shift: Tensor | None) -> Tensor:
    integers, steps = quantize(states, factor, shift)
    sums = (integers.long() - (128 if shift is None else 0)) @ weight.long().T
    return sums.double() * steps.double()[:, None] * scale + bias


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("gelu", "with_residual"), [(False, False), (True, False), (False, True)])
def test_products_are_those_of_the_rounded_factors(
    rows: int, inputs: int, outputs: int, shifted: bool, gelu: bool, with_residual: bool
) -> None:
    states, weight = torch.randn(rows, inputs), draw_weight(outputs, inputs)
    factor, shift = 0.5 + torch.rand(inputs), torch.rand(inputs) if shifted else None
    if shifted:
        states = states.abs()
    scale, bias = torch.rand(outputs) / (64 * inputs**0.5), torch.randn(outputs)
    residual = torch.randn(rows, outputs) if with_residual else None
    expected = expect(states, weight, scale, bias, factor, shift)
    expected = (F.gelu(expected) if gelu else expected) + (0 if residual is None else residual)
    found = multiply(states, pack(weight), scale, bias, factor=factor, shift=shift, residual=residual, gelu=gelu)
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sums_are_exact(sign: int) -> None:
    """Where sums of two are cut off, the largest weights that have a small neighbour; elsewhere all of them."""
    weight = torch.full((20, 64), sign * 127, dtype=torch.int8)
    if pairs_saturate():
        weight[:, ::2] = sign
    ones, zeros = torch.ones(64), torch.zeros(64)
    found = multiply(torch.full((7, 64), 255.0), pack(weight), ones[:20], zeros[:20], factor=ones, shift=zeros)
    assert (found == 255 * int(weight[0].long().sum())).all()


def test_rows_may_lie_apart_and_there_may_be_none() -> None:
    weight, wide, factor = draw_weight(5, 7), torch.randn(9, 20), torch.ones(7)
    right, scale, bias = pack(weight.T.contiguous().T), torch.ones(5), torch.randn(5)
    for left in (wide[:, 3:10], wide[:, :14:2], wide.T.contiguous().T[:, :7], wide[:, :7].bfloat16()):
        expected = expect(left.float(), weight, scale, bias, factor, None).float()
        torch.testing.assert_close(multiply(left, right, scale, bias, factor=factor), expected, rtol=1e-5, atol=1e-4)
    assert multiply(wide[:0, :7], right, scale, bias, factor=factor).shape == (0, 5)


def test_a_row_depends_neither_on_the_others_nor_on_the_threads() -> None:
    left, right, factor = torch.randn(700, 65), pack(draw_weight(50, 65)), torch.ones(65)
    scale, bias = torch.rand(2, 50)
    whole = multiply(left, right, scale, bias, factor=factor)
    for first, last in ((0, 1), (13, 20), (1, 700)):
        assert torch.equal(multiply(left[first:last], right, scale, bias, factor=factor), whole[first:last])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        assert torch.equal(multiply(left, right, scale, bias, factor=factor), whole)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("shift", [None, torch.zeros(9)])
def test_what_is_not_finite_stays_visible(shift: Tensor | None) -> None:
    left = torch.rand(8, 9)
    left[3, 4], left[5, 0] = float("nan"), float("inf")
    found = multiply(left, pack(draw_weight(10, 9)), *torch.rand(2, 10), factor=torch.ones(9), shift=shift, gelu=True)
    assert found[[3, 5]].isnan().all()
    assert found[[0, 1, 2, 4, 6, 7]].isfinite().all()


def test_other_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="5 inputs for the weights of 6"):
        multiply(torch.zeros(3, 5), pack(draw_weight(4, 6)), *torch.zeros(2, 4), factor=torch.ones(5))


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 7), (5, 384)])
def test_integers_and_steps_restore_the_states(rows: int, width: int) -> None:
    states, factor = torch.randn(rows, width), 0.5 + torch.rand(width)
    integers, steps = quantize(states, factor, None)
    scaled = states * factor
    torch.testing.assert_close(steps, scaled.abs().amax(dim=1) / 127)
    restored = (integers.float() - 128) * steps[:, None]
    assert ((restored - scaled).abs() <= 0.501 * steps[:, None]).all()


def test_states_that_are_never_negative_have_all_256_levels() -> None:
    states, shift = torch.rand(5, 99), torch.full((99,), 0.1)
    integers, steps = quantize(states, torch.ones(99), shift)
    torch.testing.assert_close(steps, (states + shift).amax(dim=1) / 255)
    assert integers.max() == 255
    assert ((integers.float() * steps[:, None] - states - shift).abs() <= 0.501 * steps[:, None]).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("shift", [None, torch.zeros(5)])
def test_a_row_that_is_not_finite_has_no_step(bad: float, shift: torch.Tensor | None) -> None:
    states = torch.rand(3, 5)
    states[1, 2] = bad
    _, steps = quantize(states, torch.ones(5), shift)
    assert steps.isnan().tolist() == [False, True, False]


def test_a_row_of_zeros_has_no_division_by_zero() -> None:
    integers, steps = quantize(torch.zeros(2, 5), torch.ones(5), None)
    assert (integers == 128).all()
    assert (steps > 0).all()


@pytest.mark.parametrize(("gelu", "with_residual"), [(False, False), (True, False), (False, True)])
def test_products_are_scaled_and_activated_as_by_torch(gelu: bool, with_residual: bool) -> None:
    product, steps, bias = 9 * torch.randn(5, 37), torch.rand(5), torch.randn(37)
    residual = torch.randn(37, 5).T if with_residual else None
    expected = product * steps[:, None] + bias
    expected = F.gelu(expected) if gelu else expected
    expected = expected if residual is None else expected + residual
    assert dequantize_(product, steps, bias, residual, gelu=gelu) is product
    torch.testing.assert_close(product, expected, rtol=1e-5, atol=1e-5)
