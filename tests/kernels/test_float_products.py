"""The compiled float32 products against torch's."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bertkit.kernels import fused
from bertkit.kernels.float_products import multiply, pack

pytestmark = pytest.mark.skipif(not fused.is_compiled(), reason="no C compiler with OpenMP on this machine")

SHAPES = [(1, 1, 1), (5, 7, 3), (25, 63, 49), (24, 384, 100), (131, 96, 97), (300, 1536, 50), (3, 70_000, 2)]
"""The second last has rows enough for several parts, the last more inputs than a part has numbers."""


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("rows", "depth", "columns"), SHAPES)
@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("with_residual", [False, True])
def test_products_are_those_of_torch(rows: int, depth: int, columns: int, gelu: bool, with_residual: bool) -> None:
    left, weight, bias = torch.randn(rows, depth), torch.randn(columns, depth) / depth**0.5, torch.randn(columns)
    residual = torch.randn(rows, columns) if with_residual else None
    expected = F.linear(left.double(), weight.double(), bias.double())
    expected = (F.gelu(expected) if gelu else expected) + (0 if residual is None else residual)
    found = multiply(left, pack(weight.T), bias, residual=residual, gelu=gelu)
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-5)


def test_rows_may_lie_apart_and_there_may_be_none() -> None:
    weight, wide = torch.randn(5, 7), torch.randn(9, 20)
    right = pack(weight.T)
    for left in (wide[:, 3:10], wide[:, :14:2], wide.T.contiguous().T[:, :7], wide[:, :7].bfloat16()):
        torch.testing.assert_close(multiply(left, right), left.float() @ weight.T, rtol=1e-5, atol=1e-5)
    assert multiply(wide[:0, :7], right).shape == (0, 5)
    bias = torch.randn(5)
    assert torch.equal(multiply(wide[:, :0], pack(weight[:, :0].T), bias), bias.expand(9, 5))
    torch.testing.assert_close(multiply(wide[:, :7], pack(weight.T.contiguous())), wide[:, :7] @ weight.T)


def test_a_row_depends_neither_on_the_others_nor_on_the_threads() -> None:
    left, right = torch.randn(700, 65), pack(torch.randn(65, 50))
    whole = multiply(left, right)
    for first, last in ((0, 1), (13, 20), (1, 700)):
        assert torch.equal(multiply(left[first:last], right), whole[first:last])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        assert torch.equal(multiply(left, right), whole)
        assert torch.equal(multiply(left[:20], right), whole[:20])
    finally:
        torch.set_num_threads(threads)


def test_what_is_not_finite_stays_visible() -> None:
    left = torch.randn(8, 9)
    left[3, 4], left[5, 0] = float("nan"), float("inf")
    found = multiply(left, pack(torch.randn(9, 10).abs()), gelu=True)
    assert found[3].isnan().all()
    assert not found[5].isfinite().any()
    assert found[[0, 1, 2, 4, 6, 7]].isfinite().all()


def test_another_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="a product of 3 x 5 and 6 x 4 numbers"):
        multiply(torch.zeros(3, 5), pack(torch.zeros(6, 4)))
