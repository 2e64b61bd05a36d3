"""Rows of running text: consecutive tokens of the corpus, across the ends of sentences and documents.

OpenAI GPT is pre-trained on such rows (Radford et al. 2018, section 4.1: "contiguous sequences of 512 tokens"). So is
ELMo, with a token before and after every sentence (allenai/bilm-tf ``data.py``). The first row of every epoch begins at
another random position, so that epochs split the text differently; the end of the text is followed by its beginning.

Positions count tokens, including those at the ends of sentences.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertkit.data.segments import RowSegments
from bertkit.data.shards import Corpus, Shard, TokenIds
from bertkit.rng import CounterRng


class RunningText:
    """All rows of ``row_length`` tokens of a corpus; a single shorter row if the corpus has fewer tokens.

    ``boundary_ids`` are the tokens that begin and end every sentence; with None the rows have the text alone.
    """

    def __init__(
        self, corpus: Corpus, *, row_length: int, seed: int, boundary_ids: tuple[int, int] | None = None
    ) -> None:
        self.seed = seed
        self._boundaries = [] if boundary_ids is None else [np.array([id]) for id in boundary_ids]
        self._shards = corpus.shards
        self._sentence_starts = [_find_sentence_starts(shard, len(self._boundaries)) for shard in corpus.shards]
        self._shard_starts = np.cumsum([0, *(int(starts[-1]) for starts in self._sentence_starts)])
        self._size = int(self._shard_starts[-1])
        self.row_length = min(row_length, self._size)

    def __len__(self) -> int:
        return self._size // max(1, self.row_length)

    def segments(self, epoch: int, indices: NDArray[np.int64], *, margin: int = 0) -> list[RowSegments]:
        """The rows at ``indices`` in this epoch, with ``margin`` more tokens at either end."""
        # "running.shift" is part of the random numbers: another name would give other rows.
        rng = CounterRng(self.seed, epoch, np.zeros(1, np.int64))
        shift = int(rng.below("running.shift", self.row_length)[0, 0])
        starts = (shift + indices * self.row_length - margin).tolist()
        return [RowSegments(self._read(start, self.row_length + 2 * margin)) for start in starts]

    def _read(self, position: int, count: int) -> TokenIds:
        """``count`` tokens from this position on, shard by shard."""
        parts: list[TokenIds] = []
        while count:
            # A row at the end of the text continues at its beginning.
            position %= self._size
            number = int(np.searchsorted(self._shard_starts, position, side="right")) - 1
            start, end = self._shard_starts[number : number + 2].tolist()
            stop = min(position + count, end)
            parts.append(self._read_shard(number, position - start, stop - start))
            count -= stop - position
            position = stop
        return np.concatenate(parts)

    def _read_shard(self, number: int, begin: int, end: int) -> TokenIds:
        """The tokens from ``begin`` to ``end`` of one shard."""
        shard, starts = self._shards[number], self._sentence_starts[number]
        if not self._boundaries:
            return shard.tokens[begin:end]
        # Whole sentences with their boundary tokens are joined, and what is outside the range is cut off afterwards.
        first = int(np.searchsorted(starts, begin, side="right")) - 1
        last = int(np.searchsorted(starts, end))
        opening, closing = self._boundaries
        parts: list[TokenIds] = []
        for sentence in range(first, last):
            parts += [opening, shard.tokens[slice(*shard.sentence_offsets[sentence : sentence + 2])], closing]
        joined: TokenIds = np.concatenate(parts)
        return joined[begin - int(starts[first]) : end - int(starts[first])]


def _find_sentence_starts(shard: Shard, num_boundaries: int) -> NDArray[np.int64]:
    """The position where every sentence begins, and the position after the last sentence.

    A sentence has ``num_boundaries`` tokens more than in the shard.
    """
    return shard.sentence_offsets + num_boundaries * np.arange(len(shard.sentence_offsets))
