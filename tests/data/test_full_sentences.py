"""Rows across the ends of documents, of a corpus whose tokens are their own positions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.numbered_corpus import DOCUMENTS, corpus, find_starts

from bertkit.data.full_sentences import FullSentences

SEP = -1
"""The id of no other token."""


def read_rows(documents: list[list[int]], max_tokens: int, shards: int = 1) -> list[list[int]]:
    rows = FullSentences(corpus(*documents, shards=shards), max_tokens=max_tokens, sep_id=SEP)
    return [row.first.tolist() for row in rows.segments(0, np.arange(len(rows)))]


def test_rows_end_where_the_next_sentence_does_not_fit() -> None:
    """Sentences of 3, 2 | 4, 1 | 9, 2 tokens in rows of 7: the third document's first is longer than a row."""
    assert read_rows([[3, 2], [4, 1], [9, 2]], max_tokens=7) == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
        [10, 11, 12, 13, 14, 15, 16],
        [17, 18, 19, 20],
    ]
    assert read_rows([[3], [2, 1], [4]], max_tokens=7) == [[0, 1, 2, SEP, 3, 4, 5], [6, 7, 8, 9]]


@given(
    documents=st.lists(st.lists(st.integers(1, 13), min_size=1, max_size=5), min_size=1, max_size=9),
    max_tokens=st.integers(2, 17),
    shards=st.integers(1, 3),
)
def test_every_token_is_in_one_row_and_rows_are_full(documents: list[list[int]], max_tokens: int, shards: int) -> None:
    shards = min(shards, len(documents))
    rows = read_rows(documents, max_tokens, shards)
    sentences, ends = find_starts(*documents)
    assert [token for row in rows for token in row if token != SEP] == list(range(sentences[-1]))
    for row in rows:
        assert 0 < len(row) <= max_tokens
        for before, token, after in zip(row, row[1:], row[2:], strict=False):
            if token == SEP:
                assert after in ends
                assert before == after - 1
        assert SEP not in (row[0], row[-1])
        inner = [token for before, token in itertools.pairwise(row) if before != SEP and token != SEP]
        assert not set(inner) & set(ends.tolist())
    shard_starts = {sum(map(sum, documents[: part[0]])) for part in np.array_split(np.arange(len(documents)), shards)}
    for row, following in itertools.pairwise(rows):
        start = following[0]
        if start in shard_starts:
            continue
        if start not in sentences:  # the rest of a sentence that is longer than a row
            assert len(row) == max_tokens
            continue
        length = int(sentences[np.searchsorted(sentences, start) + 1]) - start
        assert len(row) + int(start in ends) + length > max_tokens


@pytest.mark.parametrize("shards", [1, 3])
def test_a_row_is_a_pure_function_of_its_index(shards: int) -> None:
    rows = FullSentences(corpus(*DOCUMENTS, shards=shards), max_tokens=37, sep_id=SEP)
    every = rows.segments(0, np.arange(len(rows)))
    alone, first = rows.segments(3, np.array([len(rows) - 2, 0]))
    assert alone.first.tolist() == every[-2].first.tolist()
    assert first.first.tolist() == every[0].first.tolist()
    assert all(row.second is None for row in every)
    assert sum(SEP in row.first for row in every) > 13
