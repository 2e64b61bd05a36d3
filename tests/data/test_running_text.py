"""Rows of running text, of a corpus whose tokens are their own positions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.data.numbered_corpus import corpus

from bertkit.data.running_text import RunningText
from bertkit.rng import CounterRng


@given(
    documents=st.lists(st.lists(st.integers(1, 13), min_size=1, max_size=5), min_size=1, max_size=9),
    row_length=st.integers(1, 17),
    shards=st.integers(1, 3),
    epoch=st.integers(0, 5),
)
def test_rows_are_full_and_continue_the_row_before(
    documents: list[list[int]], row_length: int, shards: int, epoch: int
) -> None:
    tokens = sum(map(sum, documents))
    rows = RunningText(corpus(*documents, shards=min(shards, len(documents))), row_length=row_length, seed=7)
    found = [row.first.tolist() for row in rows.segments(epoch, np.arange(len(rows)))]
    row_length = min(row_length, tokens)
    assert [len(row) for row in found] == [row_length] * (tokens // row_length)
    read = [token for row in found for token in row]
    assert read == [(read[0] + position) % tokens for position in range(len(read))]
    assert read[0] < row_length


def test_epochs_differ_and_a_row_depends_on_its_index_alone() -> None:
    rows = RunningText(corpus([9, 8], [13, 7], [37]), row_length=13, seed=7)
    starts = {int(rows.segments(epoch, np.array([0]))[0].first[0]) for epoch in range(20)}
    assert len(starts) > 5
    (alone,) = rows.segments(3, np.array([2]))
    assert alone.first.tolist() == rows.segments(3, np.array([4, 2, 0]))[1].first.tolist()


@given(
    documents=st.lists(st.lists(st.integers(1, 13), min_size=1, max_size=5), min_size=1, max_size=9),
    row_length=st.integers(1, 17),
    shards=st.integers(1, 3),
    margin=st.integers(0, 2),
)
def test_sentences_with_boundary_tokens_form_one_text(
    documents: list[list[int]], row_length: int, shards: int, margin: int
) -> None:
    sentences, position = [], 0
    for length in (length for document in documents for length in document):
        sentences += [-1, *range(position, position + length), -2]
        position += length
    text = corpus(*documents, shards=min(shards, len(documents)))
    rows = RunningText(text, row_length=row_length, seed=7, boundary_ids=(-1, -2))
    found = [row.first.tolist() for row in rows.segments(0, np.arange(len(rows)), margin=margin)]
    row_length = min(row_length, len(sentences))
    shift = int(CounterRng(7, 0, np.zeros(1, np.int64)).below("running.shift", row_length)[0, 0])
    ring = sentences * 4
    start = len(sentences) + shift - margin
    assert found == [
        ring[start + row_length * row : start + row_length * row + row_length + 2 * margin]
        for row in range(len(sentences) // row_length)
    ]
