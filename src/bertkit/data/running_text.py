"""Rows of running text: one behind the other, over the ends of sentences and documents, and no token is added.

So OpenAI GPT is pre-trained (Radford et al. 2018, section 4.1: "contiguous sequences of 512 tokens"). Where the first
row begins is drawn anew in every epoch, so that no two epochs cut alike; the text is read as a ring, whose end is
followed by its beginning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.data.passages import Passage
from bertkit.data.shards import Corpus
from bertkit.draws import Draws


class RunningText:
    """All rows of a corpus of ``room`` tokens each; one row where the corpus has fewer."""

    def __init__(self, corpus: Corpus, *, room: int, seed: int) -> None:
        self.room = min(room, corpus.num_tokens)
        self.seed = seed
        self._corpus = corpus
        self._shard_starts = np.cumsum([0, *(len(shard.tokens) for shard in corpus.shards)])

    def __len__(self) -> int:
        return self._corpus.num_tokens // max(1, self.room)

    def cut(self, epoch: int, indices: NDArray[np.int64]) -> list[Passage]:
        """The rows at ``indices`` as they are in this epoch."""
        shift = int(Draws(self.seed, epoch, np.zeros(1, np.int64)).below("running.shift", self.room)[0, 0])
        return [Passage(self._read(shift + index * self.room)) for index in indices.tolist()]

    def _read(self, place: int) -> NDArray[Any]:
        """The row from this place on, shard by shard."""
        parts: list[NDArray[Any]] = []
        missing = self.room
        while missing:
            place %= self._corpus.num_tokens
            number = int(np.searchsorted(self._shard_starts, place, side="right")) - 1
            begin = place - int(self._shard_starts[number])
            parts.append(self._corpus.shards[number].tokens[begin : begin + missing])
            missing -= len(parts[-1])
            place += len(parts[-1])
        return np.concatenate(parts)
