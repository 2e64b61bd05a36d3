"""Attention of packed lists and of heads against torch's, with gradients, with and without the compiled passes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bertkit.kernels import amx, fused
from bertkit.nn.attention_passes import attend_heads, attend_tokens
from bertkit.nn.packing import PackedRows, TokenSubset

B, T, N, D = 3, 13, 2, 7
H = N * D
LENGTHS = torch.tensor([13, 5, 9])
MASK = torch.arange(T) < LENGTHS[:, None]


def split(tokens: Tensor, layout: PackedRows, parts: int) -> Tensor:
    """(parts, B, N, T, D), with autograd."""
    return layout.pad(tokens).view(layout.rows, layout.width, parts, N, D).permute(2, 0, 3, 1, 4)


def reference(
    query: Tensor | None, key_value: Tensor, query_rows: PackedRows, rows: PackedRows, allowed: Tensor | None
) -> Tensor:
    parts = split(key_value, rows, 3 if query is None else 2)
    own = parts[0] if query is None else split(query, query_rows, 1)[0]
    mask = None if allowed is None else allowed[:, None]
    mixed = F.scaled_dot_product_attention(own, parts[-2], parts[-1], attn_mask=mask)
    return query_rows.unpad(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("kernels", ["torch", "compiled", "AMX"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("in_subset", [False, True])
def test_packed_lists_are_attended_as_by_torch(
    kernels: str, padded: bool, in_subset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels == "torch":
        monkeypatch.setattr(fused, "_library", lambda: None)
    if kernels == "compiled":
        monkeypatch.setattr(amx, "_permission", lambda: 0)
    mask = MASK if padded else torch.ones_like(MASK)
    dtype, tolerance = (torch.float32, 1e-5) if kernels == "torch" else (torch.bfloat16, 0.03)
    rows = PackedRows.of(mask)
    subset = TokenSubset.of(mask & (torch.arange(T) % 3 == 1), mask) if in_subset else None
    query_rows = rows if subset is None else subset.layout
    allowed = mask[:, None] if padded else None
    length = B * T if rows.indices is None else len(rows.indices)
    inputs = [torch.randn(length, (2 if in_subset else 3) * H)]
    if subset is not None:
        inputs.append(torch.randn(len(subset.indices), H))
    results = []
    for kind, attend in ((dtype, attend_tokens), (torch.float32, None)):
        own = [each.to(kind).requires_grad_() for each in inputs]
        query = own[1] if in_subset else None
        if attend is None:
            output = reference(query, own[0], query_rows, rows, allowed)
        else:
            output = attend(query, own[0], query_rows, rows, allowed, N, 0.0)
        assert output.dtype == kind
        torch.manual_seed(7)
        torch.autograd.backward(output, torch.randn(output.shape).to(kind))
        results.append([output.detach(), *(each.grad for each in own if each.grad is not None)])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual.float(), expected, rtol=tolerance, atol=tolerance)


def test_heads_are_attended_as_by_torch() -> None:
    inputs = query, key, value = tuple(torch.randn(B, N, length, D, requires_grad=True) for length in (5, T, T))
    allowed = MASK[:, None]
    output = attend_heads(query, key, value, allowed, 0.0)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed[:, None])
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)
    upstream = torch.randn_like(output)
    for actual, right in zip(
        torch.autograd.grad(output, inputs, upstream), torch.autograd.grad(expected, inputs, upstream), strict=True
    ):
        torch.testing.assert_close(actual, right, rtol=0, atol=1e-5)


def test_dropped_probabilities_have_the_expected_mean_and_a_gradient() -> None:
    key_value = torch.randn(B * T, 3 * H, requires_grad=True)
    rows = PackedRows(B, T)
    expected = reference(None, key_value.detach(), rows, rows, None)
    outputs = torch.stack([attend_tokens(None, key_value, rows, rows, None, N, 0.3) for _ in range(400)])
    torch.testing.assert_close(outputs.mean(0), expected, rtol=0, atol=0.25)
    assert not torch.equal(outputs[0], outputs[1])
    (gradient,) = torch.autograd.grad(outputs.sum(), [key_value])
    assert gradient.isfinite().all()
