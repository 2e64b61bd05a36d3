from __future__ import annotations

import pytest
import torch

from bertkit.batch import Batch
from bertkit.objectives._text_pairs import compare, find_equal_texts, find_rows


@pytest.fixture
def batch() -> Batch:
    """Texts of two, one and three rows; the first row of the last one is that of the first."""
    ids = torch.arange(24).reshape(6, 4)
    ids[3] = ids[0]
    mask = torch.ones(6, 4, dtype=torch.bool)
    return Batch(ids, torch.zeros_like(ids), mask, labels={}, choices=torch.tensor([2, 1, 3]))


def test_the_rows_of_an_example_follow_each_other(batch: Batch) -> None:
    first, last = find_rows(batch)
    assert (first.tolist(), last.tolist()) == ([0, 2, 3], [1, 2, 5])


def test_an_equal_text_is_no_negative(batch: Batch) -> None:
    expected = [[False, False, True], [False, False, False], [True, False, False]]
    assert find_equal_texts(batch).tolist() == expected
    vectors = torch.eye(3)
    logits = compare(vectors, vectors, batch, temperature=0.5)
    infinite = -torch.inf
    assert logits.tolist() == [[2, 0, infinite], [0, 2, 0], [infinite, 0, 2]]
