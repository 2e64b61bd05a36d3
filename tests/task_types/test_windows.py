"""Windows and the window of each token against the loops of the original, and the search for answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from bertkit.batch import Feature
from bertkit.contracts import Tokens
from bertkit.task_types.windows import TokenArrays, assign_windows, find_candidates, window_starts


def starts_one_by_one(tokens: int, room: int, step: int) -> list[int]:
    starts = [0]
    while starts[-1] + room < tokens:
        starts.append(starts[-1] + step)
    return starts


def owner_one_by_one(tokens: int, room: int, step: int, token: int) -> int:
    best, owner = -1.0, -1
    for window, start in enumerate(starts_one_by_one(tokens, room, step)):
        end = min(start + room, tokens) - 1
        if start <= token <= end:
            score = min(token - start, end - token) + 0.01 * (end - start + 1)
            if score > best:
                best, owner = score, window
    return owner


@pytest.mark.parametrize("tokens", [0, 1, 6, 7, 8, 13, 37, 99])
@pytest.mark.parametrize(("room", "step"), [(7, 3), (7, 7), (13, 5), (13, 1), (98, 13)])
def test_windows_are_those_of_the_original(tokens: int, room: int, step: int) -> None:
    assert list(window_starts(tokens, room, step)) == starts_one_by_one(tokens, room, step)
    expected = [owner_one_by_one(tokens, room, step, token) for token in range(tokens)]
    assert assign_windows(tokens, room, step).tolist() == expected


@pytest.mark.parametrize(
    ("start", "end", "tokens"),
    [(0, 3, (0, 0)), (1, 2, (0, 0)), (4, 9, (1, 2)), (3, 4, None), (3, 5, (1, 1)), (0, 99, (0, 2)), (10, 12, None)],
)
def test_characters_are_found_in_tokens(start: int, end: int, tokens: tuple[int, int] | None) -> None:
    arrays = TokenArrays.of(Tokens([7, 8, 9], [(0, 3), (4, 6), (6, 10)]))
    assert arrays.find(start, end) == tokens


def window(before: int, size: int) -> Feature:
    segments = np.repeat([0, 1], [before, size + 1])
    return Feature(input_ids=np.zeros(before + size + 1, dtype=np.int64), segment_ids=segments)


def test_answers_begin_in_the_context_end_after_their_start_and_are_short() -> None:
    feature, own = window(3, 7), np.arange(11) >= 3
    own[-1] = False
    rng = np.random.default_rng(13)
    output = {"start": rng.normal(size=13), "end": rng.normal(size=13)}  # two positions of padding
    found = list(find_candidates([feature], [output], [own], n_best=20, longest=3))
    pairs = {(start, end) for start in range(3, 10) for end in range(start, min(start + 3, 10))}
    assert {(each.start, each.end) for each in found} == pairs
    scores = [output["start"][each.start] + output["end"][each.end] for each in found]
    assert scores == sorted(scores, reverse=True) == [each.score for each in found]


def test_only_the_best_starts_and_ends_of_a_window_are_paired() -> None:
    output = {"start": np.array([9.0, 0, 8, 1, 7, 2, 3, 0]), "end": np.array([9.0, 0, 1, 7, 2, 8, 3, 0])}
    own = np.array([False, False, True, True, True, True, True, False])
    found = find_candidates([window(2, 5)], [output], [own], n_best=3, longest=30)
    assert [(each.start, each.end) for each in found] == [(2, 5), (2, 3), (4, 5)]


def test_an_answer_begins_where_its_window_has_most_context() -> None:
    sure = {"start": np.array([0.0, 0, 0, 0, 5, 0, 0]), "end": np.array([0.0, 0, 0, 0, 5, 0, 0])}
    features = [window(2, 4), window(2, 4)]
    owned = [np.arange(7) == 3, np.isin(np.arange(7), (4, 5))]
    best = next(find_candidates(features, [sure, sure], owned, n_best=20, longest=30))
    assert (best.window, best.start, best.end) == (1, 4, 4)


def test_candidates_are_made_one_by_one() -> None:
    """Millions of them, of which a few are looked at, held up a server for a minute."""
    output, own = {name: np.zeros(402) for name in ("start", "end")}, np.arange(402) >= 2
    found = find_candidates([window(2, 400)] * 9, [output] * 9, [own] * 9, n_best=400, longest=400)
    assert isinstance(found, Iterator)
    assert [(each.window, each.start, each.end) for each in islice(found, 2)] == [(0, 2, 2), (0, 2, 3)]
