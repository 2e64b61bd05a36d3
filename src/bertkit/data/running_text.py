"""Rows of running text: one behind the other, over the ends of sentences and documents.

So OpenAI GPT is pre-trained (Radford et al. 2018, section 4.1: "contiguous sequences of 512 tokens"), and ELMo, whose
sentences stand between marks (allenai/bilm-tf ``data.py``). Where the first row begins is drawn anew in every epoch, so
that no two epochs cut alike; the text is read as a ring, whose end is followed by its beginning.

Places are counted in tokens, marks among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.data.segment_pairs import SegmentPair
from bertkit.data.shards import Corpus, Shard
from bertkit.rng import CounterRng


class RunningText:
    """All rows of a corpus of ``row_length`` tokens each; one row where the corpus has fewer.

    ``marks`` are the tokens that begin and end every sentence; without them there is text alone.
    """

    def __init__(
        self, corpus: Corpus, *, row_length: int, seed: int, boundary_ids: tuple[int, int] | None = None
    ) -> None:
        self.seed = seed
        self._boundaries = [] if boundary_ids is None else [np.array([mark]) for mark in boundary_ids]
        self._shards = corpus.shards
        self._sentences = [_place_sentences(shard, len(self._boundaries)) for shard in corpus.shards]
        self._shard_starts = np.cumsum([0, *(int(starts[-1]) for starts in self._sentences)])
        self._size = int(self._shard_starts[-1])
        self.row_length = min(row_length, self._size)

    def __len__(self) -> int:
        return self._size // max(1, self.row_length)

    def segments(self, epoch: int, indices: NDArray[np.int64], *, margin: int = 0) -> list[SegmentPair]:
        """The rows at ``indices`` as they are in this epoch, with so many tokens more at either end."""
        shift = int(CounterRng(self.seed, epoch, np.zeros(1, np.int64)).below("running.shift", self.row_length)[0, 0])
        starts = (shift + indices * self.row_length - margin).tolist()
        return [SegmentPair(self._read(start, self.row_length + 2 * margin)) for start in starts]

    def _read(self, place: int, missing: int) -> NDArray[Any]:
        """So many tokens from this place on, shard by shard."""
        parts: list[NDArray[Any]] = []
        while missing:
            place %= self._size
            number = int(np.searchsorted(self._shard_starts, place, side="right")) - 1
            start, end = self._shard_starts[number : number + 2].tolist()
            stop = min(place + missing, end)
            parts.append(self._read_shard(number, place - start, stop - start))
            missing -= stop - place
            place = stop
        return np.concatenate(parts)

    def _read_shard(self, number: int, begin: int, end: int) -> NDArray[Any]:
        """The tokens from ``begin`` to ``end`` of one shard."""
        shard, starts = self._shards[number], self._sentences[number]
        if not self._boundaries:
            return shard.tokens[begin:end]
        first = int(np.searchsorted(starts, begin, side="right")) - 1
        last = int(np.searchsorted(starts, end))
        opening, closing = self._boundaries
        parts: list[NDArray[Any]] = []
        for sentence in range(first, last):
            parts += [opening, shard.tokens[slice(*shard.sentence_offsets[sentence : sentence + 2])], closing]
        whole: NDArray[Any] = np.concatenate(parts)
        return whole[begin - int(starts[first]) : end - int(starts[first])]


def _place_sentences(shard: Shard, marks: int) -> NDArray[np.int64]:
    """Where every sentence begins that has so many marks, and where another would."""
    return shard.sentence_offsets + marks * np.arange(len(shard.sentence_offsets))
