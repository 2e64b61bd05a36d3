"""Attention that reads rows from a packed list: its use by the layer, and on a GPU torch's kernel itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.nn.reference_attention import make_attention
from torch import Tensor
from torch.nn import functional as F

from bertkit.nn import attention as attention_module
from bertkit.nn.attention import SelfAttention
from bertkit.nn.packing import PackedRows, TokenSubset
from bertkit.nn.varlen_attention import attend_packed, supports

T = 13
PADDED = torch.arange(T) < torch.tensor([T, 5, 1])[:, None]
FULL = torch.ones_like(PADDED)

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def attend_row_by_row(
    query: Tensor, key: Tensor, value: Tensor, query_offsets: Tensor, offsets: Tensor, *rest: object, **windows: object
) -> tuple[Tensor, ...]:
    """What torch's kernel computes, one row after the other; ``rest`` ends with dropout, causal and debugging."""
    _, _, rate, causal, _ = rest
    assert rate == 0.0
    window = windows["window_size_left"]
    assert isinstance(window, int | None)
    assert window == windows["window_size_right"]
    mixed = torch.empty_like(query)
    for row in range(len(offsets) - 1):
        own, others = (slice(int(each[row]), int(each[row + 1])) for each in (query_offsets, offsets))
        queries, keys, values = (part.transpose(0, 1) for part in (query[own], key[others], value[others]))
        columns = torch.arange(keys.shape[1])
        allowed = torch.ones(queries.shape[1], keys.shape[1], dtype=torch.bool)
        if causal:
            allowed &= columns <= columns[:, None]
        if window is not None:
            allowed &= (columns - columns[:, None]).abs() <= window
        mixed[own] = F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed).transpose(0, 1)
    return (mixed,)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer takes the path of a GPU, with a slow kernel on the CPU."""
    monkeypatch.setattr(attention_module, "supports", lambda states, rows, width: rows.offsets is not None)
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", attend_row_by_row)


def with_offsets(layout: PackedRows) -> PackedRows:
    return replace(layout, offsets=layout.find_offsets())


@pytest.mark.parametrize("mask", [PADDED, FULL], ids=["padded", "full"])
@pytest.mark.parametrize("kind", ["all", "causal", "window"])
def test_the_layer_gives_the_kernel_its_rows(
    mask: Tensor, kind: str, kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = make_attention().eval()
    layer.causal, layer.window = kind == "causal", 2 if kind == "window" else None
    layout = PackedRows.of(mask, rounded=False)
    states = torch.randn(int(mask.sum()), layer.qkv.in_features)
    packed = layer(states, with_offsets(layout))
    monkeypatch.undo()
    torch.testing.assert_close(packed, layer(states, layout), rtol=0, atol=1e-5)


@pytest.mark.parametrize("selected", [[(0, 7), (0, 2), (1, 4), (2, 0)], [(0, 1), (1, 3), (2, 0)], [(0, 6)]])
def test_a_subset_has_its_own_rows(
    selected: list[tuple[int, int]], kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one without a token in some rows."""
    layer, layout = make_attention().eval(), PackedRows.of(PADDED, rounded=False)
    positions = torch.zeros_like(PADDED)
    for row, column in selected:
        positions[row, column] = True
    subset = TokenSubset.of(positions, PADDED)
    states = torch.randn(int(PADDED.sum()), layer.qkv.in_features)
    packed = layer(states, with_offsets(layout), replace(subset, layout=with_offsets(subset.layout)))
    monkeypatch.undo()
    torch.testing.assert_close(packed, layer(states, layout, subset), rtol=0, atol=1e-5)


def test_the_kernel_computes_16_bit_floats_of_known_rows() -> None:
    rows, states = with_offsets(PackedRows.of(FULL)), torch.zeros(len(FULL) * T, 3 * 64)
    assert supports(states.bfloat16(), rows, 64)
    assert not supports(states, rows, 64)
    assert not supports(states.bfloat16(), rows, 7)
    assert not supports(states.bfloat16(), PackedRows.of(FULL).to(torch.device("cpu")), 64)


@needs_gpu
@pytest.mark.parametrize("window", [None, 2])
def test_the_kernel_and_its_gradients_are_those_of_padded_rows(window: int | None) -> None:
    device = torch.device("cuda")
    layout = PackedRows.of(PADDED, rounded=False).to(device)
    parts = torch.randn(int(PADDED.sum()), 3 * 64, device=device, dtype=torch.bfloat16, requires_grad=True)
    packed = attend_packed(None, parts, layout, layout, num_heads=4, rate=0.0, window=window)
    rows = layout.pad(parts.float()).view(len(PADDED), T, 3, 4, 16).permute(2, 0, 3, 1, 4)
    columns = torch.arange(T, device=device)
    near = (columns - columns[:, None]).abs() <= (T if window is None else window)
    mask = PADDED.to(device)[:, None, None] & near
    expected = layout.unpad(
        F.scaled_dot_product_attention(rows[0], rows[1], rows[2], attn_mask=mask).transpose(1, 2).flatten(2)
    )
    upstream = torch.randn_like(expected)
    gradients = [torch.autograd.grad((each * upstream).sum(), parts)[0] for each in (packed.float(), expected)]
    torch.testing.assert_close(packed.float(), expected, rtol=0, atol=2e-2)
    torch.testing.assert_close(*gradients, rtol=0, atol=6e-2)


@needs_gpu
def test_a_layer_on_a_gpu_equals_that_on_the_cpu() -> None:
    layer = make_attention().eval()
    layout = PackedRows.of(PADDED, rounded=False)
    states = torch.randn(int(PADDED.sum()), layer.qkv.in_features)
    expected = layer(states, layout)
    moved: SelfAttention = layer.cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        found = moved(states.cuda(), layout.to(torch.device("cuda")))
    torch.testing.assert_close(found.float().cpu(), expected, rtol=0, atol=5e-2)
