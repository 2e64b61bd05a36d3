"""Rows of running text, on a corpus whose every token says where it stands."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.data.test_passages import corpus

from bertkit.data.running_text import RunningText


@given(
    documents=st.lists(st.lists(st.integers(1, 13), min_size=1, max_size=5), min_size=1, max_size=9),
    room=st.integers(1, 17),
    shards=st.integers(1, 3),
    epoch=st.integers(0, 5),
)
def test_rows_are_full_and_go_on_where_the_one_before_ended(
    documents: list[list[int]], room: int, shards: int, epoch: int
) -> None:
    tokens = sum(map(sum, documents))
    rows = RunningText(corpus(*documents, shards=min(shards, len(documents))), room=room, seed=7)
    cut = [passage.first.tolist() for passage in rows.cut(epoch, np.arange(len(rows)))]
    room = min(room, tokens)
    assert [len(row) for row in cut] == [room] * (tokens // room)
    read = [token for row in cut for token in row]
    assert read == [(read[0] + place) % tokens for place in range(len(read))]
    assert read[0] < room


def test_epochs_cut_otherwise_and_a_row_depends_on_its_number_alone() -> None:
    rows = RunningText(corpus([9, 8], [13, 7], [37]), room=13, seed=7)
    starts = {int(rows.cut(epoch, np.array([0]))[0].first[0]) for epoch in range(20)}
    assert len(starts) > 5
    (alone,) = rows.cut(3, np.array([2]))
    assert alone.first.tolist() == rows.cut(3, np.array([4, 2, 0]))[1].first.tolist()
