"""The compiled passes of an optimizer's step against torch's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bertkit.kernels import fused
from bertkit.kernels.update import NEVER_READ, NO_GRADIENT, AdamStep, sum_of_squares, supports, update_rows

pytestmark = pytest.mark.skipif(not fused.is_compiled(), reason="the passes are not compiled on this machine")

STEP = AdamStep(decay=0.99, beta1=0.9, beta2=0.999, rate=0.01, root=2.0, eps=1e-6)


def test_squares_of_tensors_of_any_size_and_layout() -> None:
    tensors = [torch.randn(3, 5000), torch.randn(1), torch.empty(0), torch.randn(4096), torch.randn(90, 70).T]
    expected = sum(each.double().square().sum() for each in tensors)
    torch.testing.assert_close(sum_of_squares(tensors), expected, rtol=1e-6, atol=0)
    assert sum_of_squares([]) == 0
    assert sum_of_squares([torch.tensor([1.0, float("nan")])]).isnan()
    with torch.device("meta"):  # a default device of the program that uses bertkit
        torch.testing.assert_close(sum_of_squares(tensors), expected, rtol=1e-6, atol=0)


def test_no_sum_depends_on_the_number_of_threads() -> None:
    tensors, threads = [torch.randn(1000, 77), torch.randn(13)], torch.get_num_threads()
    expected = sum_of_squares(tensors)
    try:
        torch.set_num_threads(1)
        assert torch.equal(sum_of_squares(tensors), expected)
    finally:
        torch.set_num_threads(threads)


def test_a_row_moves_by_its_gradient_or_its_moments_or_decays() -> None:
    table, gradients = torch.randn(200, 37), torch.randn(2, 37)
    first, second = torch.randn(200, 37), torch.rand(200, 37)
    first[9], second[9] = 0, 0
    entries = torch.full((200,), NO_GRADIENT)
    entries[7], entries[150], entries[9] = 1, 0, NEVER_READ
    expected = table.clone(), first.clone(), second.clone()
    whole = torch.zeros(200, 37)
    whole[7], whole[150] = gradients[1], gradients[0]
    step_by_formula(*expected, whole)
    update_rows(table, first, second, gradients, entries, STEP)
    for found, exact in zip((table, first, second), expected, strict=True):
        torch.testing.assert_close(found, exact, rtol=1e-6, atol=1e-6)
    assert not first[9].any()


def step_by_formula(table: Tensor, first: Tensor, second: Tensor, gradient: Tensor) -> None:
    first.lerp_(gradient, 1 - STEP.beta1)
    second.mul_(STEP.beta2).addcmul_(gradient, gradient, value=1 - STEP.beta2)
    table.mul_(STEP.decay).sub_(STEP.rate * first / (second.sqrt() * STEP.root + STEP.eps))


def test_other_formats_are_left_to_torch() -> None:
    assert supports([torch.zeros(3)])
    assert not supports([torch.zeros(3), torch.zeros(3).double()])
