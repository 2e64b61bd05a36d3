"""Splitting rows into their two texts and putting them together, on hand-made and on random rows."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from bertkit.nn.segments import Part, split_segments

W = 3
LENGTHS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5)


def make_rows(lengths: list[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Segment ids and mask of rows whose two texts have these lengths."""
    counts = torch.tensor(lengths)
    both = counts.sum(dim=1, keepdim=True)
    columns = torch.arange(max(1, int(both.max())))
    real = columns < both
    first = counts[:, :1]
    return ((columns >= first) & real).long(), real


def test_hand_made_rows_are_split_into_their_texts() -> None:
    # fmt: off
    states = torch.tensor([[1, 2, 3, 4, 5, 0],
                           [6, 7, 8, 9, 0, 0],
                           [10, 11, 12, 13, 14, 15]]).unsqueeze(2).float()
    # fmt: on
    segments, real = make_rows([(2, 3), (3, 1), (1, 5)])
    first, second = split_segments(segments, real)
    assert first.take(states).squeeze(2).tolist() == [[1, 2, 0], [6, 7, 8], [10, 0, 0]]
    assert second.take(states).squeeze(2).tolist() == [[3, 4, 5, 0, 0], [9, 0, 0, 0, 0], [11, 12, 13, 14, 15]]
    assert first.real.tolist() == [[True, True, False], [True, True, True], [True, False, False]]
    assert torch.equal(second.mask, second.take(states).squeeze(2) > 0)


@given(LENGTHS)
def test_putting_both_parts_back_gives_the_rows(lengths: list[tuple[int, int]]) -> None:
    segments, real = make_rows(lengths)
    states = torch.randn(*real.shape, W)
    first, second = split_segments(segments, real)
    together = first.put(first.take(states)) + second.put(second.take(states))
    assert torch.equal(together, states * real.unsqueeze(2))
    for part, column in ((first, 0), (second, 1)):
        assert part.real.sum(dim=1).tolist() == [each[column] for each in lengths]
        assert not part.take(states)[~part.real].any()


def test_a_part_may_have_any_tokens_of_a_row() -> None:
    selected = torch.tensor([[True, False, False, True, True], [False, True, False, False, False]])
    states = torch.arange(1.0, 11).view(2, 5, 1)
    assert Part.of(selected).take(states).squeeze(2).tolist() == [[1, 4, 5], [7, 0, 0]]
    assert Part.of(selected).put(torch.ones(2, 3, 1)).squeeze(2).tolist() == [[1, 0, 0, 1, 1], [0, 1, 0, 0, 0]]


def test_rows_without_a_second_text_get_one_empty_column() -> None:
    segments, real = make_rows([(3, 0), (5, 0)])
    _, second = split_segments(segments, real)
    states = torch.randn(2, 5, W)
    assert second.real.tolist() == [[False], [False]]
    assert second.take(states).tolist() == torch.zeros(2, 1, W).tolist()
    assert not second.put(torch.ones(2, 1, W)).any()


def test_gradients_equal_finite_differences() -> None:
    first, second = split_segments(*make_rows([(2, 3), (4, 0), (1, 5)]))
    states = torch.randn(3, 6, W, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: first.put(first.take(each).square()), states)
    assert torch.autograd.gradcheck(second.take, states)


def test_moving_a_part_reads_no_number_from_the_device() -> None:
    """The device "meta" has no data; the lengths of the rows are known on the host."""
    part = split_segments(*make_rows([(2, 3), (3, 1)]))[1].to(torch.device("meta"))
    assert part.take(torch.ones(2, 5, W, device="meta")).shape == (2, 3, W)
    assert part.mask.is_meta
    assert part.real.sum(dim=1).tolist() == [3, 1]
