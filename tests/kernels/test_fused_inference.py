"""The compiled passes of inference against torch's operations."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bertkit.kernels import fused
from bertkit.kernels.fused_inference import attend_rows, can_attend, layer_norm

pytestmark = pytest.mark.skipif(not fused.is_compiled(), reason="no C compiler with OpenMP on this machine")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "length", "queries"), [(1, 1, 1), (3, 5, 5), (2, 17, 17), (3, 33, 2), (2, 48, 1)])
@pytest.mark.parametrize("size", [4, 20, 32])
def test_attention_equals_torchs(dtype: torch.dtype, rows: int, length: int, queries: int, size: int) -> None:
    heads = 3
    width = heads * size
    wide = torch.randn(rows * length, 3 * width).to(dtype)
    query = wide[:, :width] if queries == length else torch.randn(rows * queries, width).to(dtype)
    key, value = wide[:, width : 2 * width], wide[:, 2 * width :]
    out = torch.full((rows * queries, width), float("nan"), dtype=dtype)
    attend_rows(query, key, value, out, rows=rows, heads=heads)
    parts = [part.float().reshape(rows, -1, heads, size).transpose(1, 2) for part in (query, key, value)]
    expected = F.scaled_dot_product_attention(parts[0], parts[1], parts[2]).transpose(1, 2).reshape(out.shape)
    tolerance = 1e-5 if dtype == torch.float32 else 0.02
    torch.testing.assert_close(out.float(), expected, rtol=tolerance, atol=tolerance)


def test_attention_of_large_scores_is_finite_and_one_of_nan_is_nan() -> None:
    query, key, value = 100 * torch.randn(3, 5, 4)
    out = torch.empty(5, 4)
    attend_rows(query, key, value, out, rows=1, heads=1)
    assert out.isfinite().all()
    value[3, 1] = float("nan")
    attend_rows(query, key, value, out, rows=1, heads=1)
    assert out[:, 1].isnan().all()


def test_long_texts_and_odd_heads_are_left_to_torch() -> None:
    assert can_attend(48, 32, torch.float32)
    assert not can_attend(49, 32, torch.float32)
    assert not can_attend(48, 30, torch.float32)
    assert not can_attend(48, 32, torch.float16)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02)])
def test_layer_norm_equals_torchs(dtype: torch.dtype, tolerance: float) -> None:
    states, weight, bias = (3 + 2 * torch.randn(5, 37)).to(dtype), torch.randn(37), torch.randn(37)
    expected = F.layer_norm(states.float(), (37,), weight, bias, 1e-12)
    actual = layer_norm(states, weight, bias, 1e-12)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.float(), expected, rtol=tolerance, atol=tolerance)
