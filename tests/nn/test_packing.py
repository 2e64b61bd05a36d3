"""Tokens in a list and in rows: there and back, and the gradients of both ways."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertkit.nn.packing import PackedRows, TokenSubset, round_up, select_tokens

W = 3
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def filled_by(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@given(LENGTHS)
def test_spread_and_collect_undo_each_other(lengths: list[int]) -> None:
    filled = filled_by(lengths)
    layout, tokens = PackedRows.of(filled), torch.randn(sum(lengths), W)
    rows = layout.pad(tokens)
    assert rows.shape == (*filled.shape, W)
    assert torch.equal(rows[filled], tokens)
    assert not rows[~filled].any()
    assert layout.mask is None or torch.equal(layout.mask, filled)
    assert torch.equal(layout.unpad(rows), tokens)


def test_full_rows_are_not_copied() -> None:
    layout, tokens = PackedRows.of(torch.ones(5, 7, dtype=torch.bool)), torch.randn(35, W)
    assert layout.mask is None
    assert layout.pad(tokens).data_ptr() == tokens.data_ptr() == layout.unpad(layout.pad(tokens)).data_ptr()


@given(LENGTHS, st.integers(0, 2**35 - 1))
def test_a_choice_keeps_the_rows_apart(lengths: list[int], bits: int) -> None:
    filled = filled_by(lengths)
    drawn = torch.tensor([bits >> place & 1 for place in range(filled.numel())], dtype=torch.bool).view(filled.shape)
    positions = (filled & drawn).index_fill(1, torch.tensor([0]), True)
    tokens = torch.randn(sum(lengths), W)
    choice = TokenSubset.of(positions, filled)
    chosen = select_tokens(tokens, choice.indices)
    assert torch.equal(chosen, PackedRows.of(filled).pad(tokens)[positions])
    rows = choice.layout.pad(chosen)
    assert rows.shape[:2] == (len(lengths), int(positions.sum(dim=1).max()))
    for row, each in enumerate(positions):
        assert torch.equal(rows[row, : int(each.sum())], PackedRows.of(filled).pad(tokens)[row][each])


@pytest.mark.parametrize("lengths", [[5, 1, 7], [3, 3]])
def test_gradients_are_those_of_finite_differences(lengths: list[int]) -> None:
    layout = PackedRows.of(filled_by(lengths))
    tokens = torch.randn(sum(lengths), W, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.pad, tokens)
    assert torch.autograd.gradcheck(lambda each: layout.unpad(layout.pad(each).square()), tokens)
    assert torch.autograd.gradcheck(lambda each: select_tokens(each, torch.tensor([4, 0, 2])), tokens)


@given(st.integers(0, 10**6))
def test_round_lengths_are_near_and_few(count: int) -> None:
    rounded = round_up(count)
    assert count <= rounded <= count + count // 32
    assert round_up(rounded) == rounded


def test_lists_of_like_length_have_one_length() -> None:
    lengths = {len(PackedRows.of(filled_by([40, 37, 39, 33 + number])).indices) for number in range(4)}  # type: ignore[arg-type]
    assert lengths == {152}
    assert len({round_up(count) for count in range(1025, 2049)}) == 32


def test_what_fills_up_the_list_is_read_by_nobody() -> None:
    filled = filled_by([40, 37, 39, 33])
    layout = PackedRows.of(filled)
    assert layout.indices is not None
    assert len(layout.indices) == 152
    assert len(set(layout.indices.tolist())) == 152
    assert layout.mask is filled
