"""Packed and padded tokens: conversion in both directions, its gradients, and round lengths."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertkit.nn.packing import PackedRows, TokenSubset, _has_flash_attention, round_up, select_tokens

W = 3
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def make_mask(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@given(LENGTHS)
def test_unpad_is_the_inverse_of_pad(lengths: list[int]) -> None:
    mask = make_mask(lengths)
    layout, tokens = PackedRows.of(mask), torch.randn(sum(lengths), W)
    rows = layout.pad(tokens)
    assert rows.shape == (*mask.shape, W)
    assert torch.equal(rows[mask], tokens)
    assert not rows[~mask].any()
    assert layout.mask is None or torch.equal(layout.mask, mask)
    assert torch.equal(layout.unpad(rows), tokens)


def test_full_rows_are_not_copied() -> None:
    layout, tokens = PackedRows.of(torch.ones(5, 7, dtype=torch.bool)), torch.randn(35, W)
    assert layout.mask is None
    assert layout.pad(tokens).data_ptr() == tokens.data_ptr() == layout.unpad(layout.pad(tokens)).data_ptr()


@given(LENGTHS, st.integers(0, 2**35 - 1))
def test_a_subset_keeps_the_tokens_of_each_row(lengths: list[int], bits: int) -> None:
    mask = make_mask(lengths)
    random = torch.tensor([bits >> bit & 1 for bit in range(mask.numel())], dtype=torch.bool).view(mask.shape)
    positions = (mask & random).index_fill(1, torch.tensor([0]), True)
    tokens = torch.randn(sum(lengths), W)
    subset = TokenSubset.of(positions, mask)
    selected = select_tokens(tokens, subset.indices)
    assert torch.equal(selected, PackedRows.of(mask).pad(tokens)[positions])
    rows = subset.layout.pad(selected)
    assert rows.shape[:2] == (len(lengths), int(positions.sum(dim=1).max()))
    for row, each in enumerate(positions):
        assert torch.equal(rows[row, : int(each.sum())], PackedRows.of(mask).pad(tokens)[row][each])


@pytest.mark.parametrize("lengths", [[5, 1, 7], [3, 3]])
def test_gradients_equal_finite_differences(lengths: list[int]) -> None:
    layout = PackedRows.of(make_mask(lengths))
    tokens = torch.randn(sum(lengths), W, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.pad, tokens)
    assert torch.autograd.gradcheck(lambda each: layout.unpad(layout.pad(each).square()), tokens)
    assert torch.autograd.gradcheck(lambda each: select_tokens(each, torch.tensor([4, 0, 2])), tokens)


@given(st.integers(0, 10**6))
def test_a_round_length_is_at_most_a_thirty_second_more(count: int) -> None:
    rounded = round_up(count)
    assert count <= rounded <= count + count // 32
    assert round_up(rounded) == rounded


def test_similar_lengths_are_rounded_to_the_same_length() -> None:
    lengths = {len(PackedRows.of(make_mask([40, 37, 39, 33 + number])).indices) for number in range(4)}  # type: ignore[arg-type]
    assert lengths == {152}
    assert len({round_up(count) for count in range(1025, 2049)}) == 32


def test_rounding_adds_padding_that_the_mask_excludes() -> None:
    mask = make_mask([40, 37, 39, 33])
    layout = PackedRows.of(mask)
    assert layout.indices is not None
    assert len(layout.indices) == 152
    assert len(set(layout.indices.tolist())) == 152
    assert layout.mask is mask


@given(LENGTHS)
def test_offsets_are_where_rows_begin_in_the_list(lengths: list[int]) -> None:
    layout = PackedRows.of(make_mask(lengths), rounded=False)
    assert layout.find_offsets().tolist() == [sum(lengths[:row]) for row in range(len(lengths) + 1)]


def test_the_length_of_a_row_ends_with_its_last_token() -> None:
    mask = torch.tensor([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=torch.bool)
    layout = PackedRows.of(mask)
    assert layout.lengths is not None
    assert layout.lengths.tolist() == [3, 0, 4]
    subset = TokenSubset.of(mask & torch.tensor([True, True, False, True]), mask).layout
    assert subset.lengths is not None
    assert subset.lengths.tolist() == [1, 0, 3]
    assert PackedRows.of(torch.ones(2, 3, dtype=torch.bool)).lengths is None


@pytest.mark.parametrize(("capability", "has_it"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_flash_attention_is_for_gpus_from_ampere_on(
    capability: tuple[int, int], has_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    find = _has_flash_attention.__wrapped__
    assert find(torch.device("cuda", 0)) == has_it
    assert not find(torch.device("cpu"))
