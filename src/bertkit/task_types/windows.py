"""Windows over a long context, and the best spans in them.

Letters: N tokens of the context, T of a window.

Windows begin every ``step`` tokens until one reaches the end. Each token is predicted in the one window where it has
the most context on its shorter side (google-research/bert ``run_squad.py``, ``convert_examples_to_features`` and
``_check_is_max_context``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Feature
from bertkit.contracts import OutputArrays, Tokens


class TokenArrays(NamedTuple):
    """A text as arrays: ``ids`` (N,) and ``offsets`` (N, 2), the first character of each token and the one after it.

    A word-level tokenizer gives ``ids`` (N, 1 + C): of each word its id and its C characters.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int32]

    @classmethod
    def of(cls, tokens: Tokens) -> TokenArrays:
        """The arrays of a tokenized text."""
        offsets = np.array(tokens.offsets, dtype=np.int32).reshape(-1, 2)
        return cls(np.array(tokens.ids, dtype=np.int32), offsets)

    def find(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and last token of the characters ``start`` to ``end``; None if no token has any of them."""
        first = int(np.searchsorted(self.offsets[:, 1], start, side="right"))
        last = int(np.searchsorted(self.offsets[:, 0], end, side="left")) - 1
        return (first, last) if first <= last else None


class Candidate(NamedTuple):
    """A span: tokens ``start`` to ``end`` of a window, and the sum of their scores."""

    score: float
    window: int
    start: int
    end: int


def window_starts(tokens: int, length: int, step: int) -> range:
    """The first token of every window of ``length`` tokens; a context without tokens has one window."""
    assert 0 < step <= length, "tokens between two windows would be lost"
    return range(0, max(tokens - length, 0) + step, step) if tokens > length else range(1)


def assign_windows(tokens: int, length: int, step: int) -> NDArray[np.int64]:
    """(N,) the window in which each token is predicted: the first of those with the highest score.

    The score is the smaller number of tokens on one side of it, plus a hundredth of the length of the window.
    """
    owner = np.zeros(tokens, dtype=np.int64)
    best = np.full(tokens, -np.inf)
    for window, start in enumerate(window_starts(tokens, length, step)):
        size = min(length, tokens - start)
        place = np.arange(size)
        score = np.minimum(place, size - 1 - place) + 0.01 * size
        part = slice(start, start + size)
        better = score > best[part]
        owner[part][better] = window
        best[part][better] = score[better]
    return owner


def find_candidates(
    features: Sequence[Feature],
    outputs: Sequence[OutputArrays],
    owned: Sequence[NDArray[np.bool_]],
    *,
    n_best: int,
    longest: int,
) -> Iterator[Candidate]:
    """Spans of at most ``longest`` tokens between the ``n_best`` starts and ends of each window.

    The best come first, equal ones in the order of windows, starts and ends. ``owned`` (T,) is True for the tokens of a
    window where a span may begin: those that are predicted in it. A span may end at any token of the context.
    """
    places, scores = [], []
    for window, (feature, output, own) in enumerate(zip(features, outputs, owned, strict=True)):
        size = len(feature)
        starts, ends = (_highest(output[name][:size], n_best) for name in ("start", "end"))
        first, last = int(np.flatnonzero(feature.segment_ids)[0]), len(feature) - 2  # of the context
        lengths = ends[None, :] - starts[:, None] + 1
        allowed = (lengths > 0) & (lengths <= longest) & own[starts][:, None]
        allowed &= (ends >= first)[None, :] & (ends <= last)[None, :]
        rows, columns = np.nonzero(allowed)
        start, end = starts[rows], ends[columns]
        places.append(np.stack([np.full_like(start, window), start, end], axis=1))
        scores.append(output["start"][start].astype(np.float64) + output["end"][end])
    return _sort(np.concatenate(scores), np.concatenate(places)) if scores else iter(())


def _sort(scores: NDArray[np.float64], places: NDArray[np.int64]) -> Iterator[Candidate]:
    """The candidates one by one: of 400 windows with 100 starts and ends each there may be millions."""
    for number in np.argsort(-scores, kind="stable"):
        window, start, end = places[number].tolist()
        yield Candidate(float(scores[number]), window, start, end)


def _highest(scores: NDArray[np.floating], count: int) -> NDArray[np.int64]:
    """The indices of the highest scores, the highest first, equal ones in order."""
    places: NDArray[np.int64] = np.argsort(-scores, kind="stable")[:count]
    return places
