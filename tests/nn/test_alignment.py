"""The soft alignment of two texts against its formula, token by token."""

from __future__ import annotations

import numpy as np
import torch
from tests.nn.text_pairs import FIRST, SECOND, B, W, make_text, softmax, weighted_sum

from bertkit.nn.alignment import align, masked_softmax


def test_alignment_equals_the_formula() -> None:
    (first, first_mask), (second, second_mask) = make_text(FIRST), make_text(SECOND)
    for_first, for_second = align(first, second, first_mask, second_mask)
    for row in range(B):
        a, b = first[row, : FIRST[row]].numpy(), second[row, : SECOND[row]].numpy()
        for position, token in enumerate(a):
            expected = weighted_sum(softmax([float(np.dot(token, other)) for other in b]), b)
            np.testing.assert_allclose(for_first[row, position].numpy(), expected)
        for position, token in enumerate(b):
            expected = weighted_sum(softmax([float(np.dot(other, token)) for other in a]), a)
            np.testing.assert_allclose(for_second[row, position].numpy(), expected)


def test_a_token_aligns_with_the_most_similar_token() -> None:
    first = torch.tensor([[[50.0, 0.0], [0.0, 50.0]]])
    second = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [9.0, 9.0]]])
    second_mask = torch.tensor([[True, True, False]])
    for_first, for_second = align(first, second, torch.ones(1, 2, dtype=torch.bool), second_mask)
    torch.testing.assert_close(for_first, torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    torch.testing.assert_close(for_second[:, :2], torch.tensor([[[0.0, 50.0], [50.0, 0.0]]]))


def test_padding_is_ignored() -> None:
    (first, first_mask), (second, second_mask) = make_text(FIRST), make_text(SECOND)
    expected = align(first, second, first_mask, second_mask)
    changed = align(
        first.masked_fill(~first_mask.unsqueeze(2), 57.0),
        second.masked_fill(~second_mask.unsqueeze(2), 57.0),
        first_mask,
        second_mask,
    )
    for mask, before, after in zip((first_mask, second_mask), expected, changed, strict=True):
        assert torch.equal(before[mask], after[mask])


def test_a_softmax_without_any_entry_is_zero() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[False, False, False], [True, False, True]]))
    assert weights[0].tolist() == [0, 0, 0]
    torch.testing.assert_close(weights[1, [0, 2]], torch.tensor([4.0, 6.0]).softmax(0))
    weights[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    assert scores.grad[0].tolist() == [0, 0, 0]


def test_a_text_aligned_with_an_empty_text_is_zero() -> None:
    first, first_mask = make_text(FIRST)
    empty = torch.zeros(B, 1, W, dtype=torch.float64)
    for_first, for_empty = align(first, empty, first_mask, torch.zeros(B, 1, dtype=torch.bool))
    assert not for_first.any()
    assert for_empty.isfinite().all()
