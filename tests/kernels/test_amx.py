"""Products on AMX against float64."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.on_amx import exact, needs_amx
from torch import Tensor
from torch.nn import functional as F

from bertkit.kernels import amx

SHAPES = [
    (1, 32, 32),
    (5, 7, 3),
    (1, 1, 1),
    (33, 100, 65),
    (64, 64, 64),
    (70, 5000, 50),
    (300, 1700, 40),
    (700, 64, 999),
]


def make(rows: int, columns: int, dtype: torch.dtype, *, transposed: bool) -> Tensor:
    """A random matrix, whose rows or columns lie one after the other in memory."""
    return torch.randn(columns, rows).to(dtype).T if transposed else torch.randn(rows, columns).to(dtype)


@needs_amx
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("left_transposed", [False, True])
@pytest.mark.parametrize("right_transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_of_any_shape_and_layout(
    shape: tuple[int, int, int], left_transposed: bool, right_transposed: bool, dtype: torch.dtype
) -> None:
    rows, depth, columns = shape
    left = make(rows, depth, dtype, transposed=left_transposed)
    right = make(depth, columns, dtype, transposed=right_transposed)
    bias, expected = torch.randn(columns), exact(left, right)
    scale = max(1.0, expected.abs().max().item())
    product = amx.multiply(left, amx.pack(right), bias, dtype=torch.float32)
    torch.testing.assert_close(product.double(), expected + bias, rtol=0, atol=3e-6 * scale)
    rounded = amx.multiply(left, amx.pack(right), dtype=torch.bfloat16)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.double(), expected, rtol=2**-8, atol=1e-5 * scale)


@needs_amx
@pytest.mark.parametrize("columns", [32, 45, 96])
def test_gelu_and_a_residual_are_applied_in_float32(columns: int) -> None:
    left, right, bias = 3 * torch.randn(40, 64), torch.randn(64, columns), torch.randn(columns)
    sums, residual = exact(left, right) + bias, torch.randn(40, columns).bfloat16()
    found = amx.multiply(left, amx.pack(right), bias, gelu=True, dtype=torch.float32)
    torch.testing.assert_close(found.double(), F.gelu(sums), rtol=2e-5, atol=6e-5)
    found = amx.multiply(left, amx.pack(right), bias, residual=residual, dtype=torch.float32)
    torch.testing.assert_close(found.double(), sums + residual, rtol=1e-5, atol=1e-4)


@needs_amx
@pytest.mark.parametrize("columns", [32, 45, 96])
def test_a_product_keeps_what_gelu_is_applied_to_and_one_is_multiplied_by_its_slope(columns: int) -> None:
    left, right, bias = 3 * torch.randn(40, 64) / 8, torch.randn(64, columns), torch.randn(columns)
    kept = amx.new_product(40, columns)
    amx.multiply(left, amx.pack(right), bias, gelu=True, before_gelu=kept)
    assert torch.equal(kept, amx.multiply(left, amx.pack(right), bias))
    spread = kept.copy_(torch.linspace(-8, 8, kept.numel()).view_as(kept)).double().requires_grad_()
    (slope,) = torch.autograd.grad(F.gelu(spread).sum(), spread)
    found = amx.multiply(left, amx.pack(right), slope_at=kept, dtype=torch.float32)
    torch.testing.assert_close(found.double(), exact(left, right) * slope, rtol=1e-5, atol=3e-3)


@needs_amx
def test_no_result_depends_on_other_rows_or_on_the_number_of_threads() -> None:
    left, right = torch.randn(200, 1700), amx.pack(torch.randn(1700, 70))
    product = amx.multiply(left, right)
    for rows in (1, 20, 33, 128):
        assert torch.equal(amx.multiply(left[:rows], right), product[:rows])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.equal(amx.multiply(left, right), product)
    finally:
        torch.set_num_threads(threads)


@needs_amx
def test_what_is_not_finite_stays_so() -> None:
    left = torch.ones(40, 64)
    left[3, 5], left[7, 0] = float("nan"), float("inf")
    for gelu in (False, True):
        product = amx.multiply(left, amx.pack(torch.ones(64, 33)), gelu=gelu)
        assert product[3].isnan().all()
        assert product[7].isinf().all()
        assert product[[0, 39]].isfinite().all()


@needs_amx
def test_matrices_with_gaps_or_without_numbers() -> None:
    wide, expanded = torch.randn(40, 90), torch.randn(1, 1).expand(40, 5)
    for left, right in ((wide[:, 10:50], wide[:, ::2][:, :40].T), (expanded, expanded.T)):
        product = amx.multiply(left, amx.pack(right), dtype=torch.float32)
        torch.testing.assert_close(product.double(), exact(left, right), rtol=1e-5, atol=1e-5)
    assert amx.multiply(torch.empty(0, 5), amx.pack(torch.randn(5, 3))).shape == (0, 3)


@needs_amx
def test_totals_of_rows_in_any_layout() -> None:
    for left in (torch.randn(100, 70).T, torch.randn(1, 100), torch.randn(100, 1), torch.randn(100, 1).T):
        totals = torch.full((len(left),), 7.0)
        amx.multiply(left, amx.pack(torch.randn(left.shape[1], 40)), row_totals=totals)
        torch.testing.assert_close(totals - 7, left.bfloat16().float().sum(1), rtol=0.01, atol=0.1)


@needs_amx
def test_sides_that_do_not_fit_are_refused_and_other_formats_converted() -> None:
    with pytest.raises(ValueError, match="a product of 3 x 30 and 64 x 8 numbers"):
        amx.multiply(torch.randn(3, 30), amx.pack(torch.randn(64, 8)))
    with pytest.raises(ValueError, match="a product of 5 x 0 and 0 x 3 numbers"):
        amx.multiply(torch.empty(5, 0), amx.pack(torch.empty(0, 3)))
    assert amx.multiply(torch.randn(3, 30), amx.pack(torch.empty(30, 0))).shape == (3, 0)
    left, right = torch.randn(5, 40), torch.randn(40, 9)
    expected = amx.multiply(left, amx.pack(right))
    assert torch.equal(amx.multiply(left.double(), amx.pack(right.double())), expected)


def test_the_user_is_told_who_computes_products(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("own kernels for AMX" in amx.explain()) == amx.is_available()
    monkeypatch.setattr(amx, "_permission", lambda: 0)
    monkeypatch.setattr(amx, "has_amx", lambda: False)
    assert amx.explain() == "by torch; this processor has no AMX"
    monkeypatch.setattr(amx, "has_amx", lambda: True)
    monkeypatch.setattr(amx, "is_compiled", lambda: True)
    assert amx.explain() == "by torch, because the system does not let this process use AMX"
    monkeypatch.setattr(amx, "_permission", lambda: -1)
    assert amx.explain() == "by torch, because the C compiler does not know AMX; GCC 11 and later do"
    monkeypatch.setattr(amx, "is_compiled", lambda: False)
    assert "with a C compiler" in amx.explain()
