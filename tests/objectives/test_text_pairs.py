from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch
from bertkit.objectives._text_pairs import compare, find_equal_texts, find_rows


@pytest.fixture
def batch() -> Batch:
    """Texts of two, one and three rows; the first row of the last one is that of the first."""
    ids = torch.arange(24).reshape(6, 4)
    ids[3] = ids[0]
    mask = torch.ones(6, 4, dtype=torch.bool)
    return Batch(ids, torch.zeros_like(ids), mask, labels={}, rows_per_feature=torch.tensor([2, 1, 3]))


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


def test_the_text_itself_is_no_negative() -> None:
    """Of the pairs (a, b) and (b, c), b is the second text of the first and the first one of the second."""
    ids = torch.arange(12).reshape(3, 4)[[0, 1, 1, 2]]
    mask = torch.ones(4, 4, dtype=torch.bool)
    batch = Batch(ids, torch.zeros_like(ids), mask, labels={}, rows_per_feature=torch.tensor([2, 2]))
    assert find_equal_texts(batch).tolist() == [[False, False], [True, False]]


def test_texts_are_compared_as_they_were_before_masking(batch: Batch) -> None:
    expected = find_equal_texts(batch)
    labels = torch.full_like(batch.input_ids, IGNORE)
    labels[3, 1] = batch.input_ids[3, 1]
    masked = batch.input_ids.masked_fill(labels != IGNORE, 99)
    assert torch.equal(find_equal_texts(replace(batch, input_ids=masked).with_labels(mlm=labels)), expected)


def test_cosines_are_in_float32_whatever_the_precision(batch: Batch) -> None:
    vectors = F.normalize(torch.randn(3, 64) + 9, dim=1)
    expected = compare(vectors, vectors, batch, temperature=0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = compare(vectors, vectors, batch, temperature=0.05)
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)
