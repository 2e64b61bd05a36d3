"""Pieces of a corpus for pre-training: pairs of sentence runs, or single runs (paper, section A.2).

A passage is a pure function of (seed, epoch, index), so nothing is written to disk, every epoch cuts the
corpus anew, and any example can be made at any time.

The reference code walks each document from its head and hands unused sentences on to the next example
(google-research/bert ``create_pretraining_data.py``). Here the corpus is cut into slots instead, as long
as what such a walk uses up on average, shifted by a random amount every epoch; an example begins with the
sentence in which its slot begins. Lengths, the run of A, the draw of B, the 50 % that is more than 50 %
and the truncation are the reference's. Two things differ: the short sequences are drawn for each example
and not once a document, and the sentences skipped after a random B come back with the next epoch's shift
and not with the next example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.data.features import truncated_lengths
from bertkit.data.shards import Corpus, Shard
from bertkit.errors import data_error, usage_error
from bertkit.rng import CounterRng

_OTHER_DOCUMENT_TRIES = 10
_SHARE_USED_BY_A_PAIR = 0.75
"""Half of the pairs use only A, which is half of the max_tokens on average; the others use all of it."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How rows are sampled: pairs of segments or single segments, as the objectives need; the rest is set here.

    The second segment of a pair is from another document in ``random_next`` of the pairs. ``short_sequences`` of the
    rows have a random shorter length. With ``full_sentences`` single segments continue over the ends of documents and
    none is short on purpose; see ``full_sentences.py``. With ``running_text`` rows are text without special tokens and
    end anywhere; see ``running_text.py``.
    """

    random_next: float = 0.5
    short_sequences: float = 0.1
    full_sentences: bool = False
    running_text: bool = False

    def __post_init__(self) -> None:
        if self.full_sentences and self.running_text:
            raise usage_error("task.sampling has full_sentences and running_text; rows end in one way: give one.")


@dataclass(frozen=True, slots=True, eq=False)
class SegmentPair:
    """Token runs ``first`` and ``second``; ``is_random`` says that the second is from another document."""

    first: NDArray[Any]
    second: NDArray[Any] | None = None
    is_random: bool = False


class SegmentPairs:
    """All passages of a corpus that fit ``max_tokens`` tokens, special tokens not counted."""

    def __init__(self, corpus: Corpus, sampling: Sampling, *, pairs: bool, max_tokens: int, seed: int) -> None:
        if pairs and corpus.num_documents < 2:
            raise data_error(
                f"{corpus.folder} has one document in this split; next-sentence pairs need two. "
                'Add documents, or train without nsp: --set task.objectives=["mlm"].'
            )
        self.corpus = corpus
        self.sampling = sampling
        self.pairs = pairs
        self.max_tokens = max_tokens
        self.seed = seed
        used = max_tokens * (_SHARE_USED_BY_A_PAIR if pairs else 1.0)
        self.slot = max(1, int(used))
        self._shard_starts = np.cumsum([0, *(len(shard.tokens) for shard in corpus.shards)])
        self._document_starts = np.cumsum([0, *(len(shard.document_offsets) - 1 for shard in corpus.shards)])

    def __len__(self) -> int:
        return int(max(1, self.corpus.num_tokens // self.slot))

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[SegmentPair]:
        """The passages at ``indices`` as they are in this epoch."""
        draws = CounterRng(self.seed, epoch, indices)
        shift = int(CounterRng(self.seed, epoch, np.zeros(1, np.int64)).below("passage.shift", self.slot)[0, 0])
        places = (indices * self.slot + shift) % self.corpus.num_tokens
        rooms = self._rooms(draws)
        chances = draws.uniform("passage.chances", 5 + _OTHER_DOCUMENT_TRIES)
        return [self._cut_one(*row) for row in zip(places.tolist(), rooms.tolist(), chances, strict=True)]

    def _rooms(self, draws: CounterRng) -> NDArray[np.int64]:
        """Usually all the max_tokens; for one example in ten a length drawn from 2 upwards (section A.2)."""
        short = draws.uniform("passage.short")[:, 0] < self.sampling.short_sequences
        lengths = 2 + draws.below("passage.length", self.max_tokens - 1)[:, 0]
        return np.where(short, lengths, self.max_tokens)

    def _cut_one(self, place: int, max_tokens: int, chances: NDArray[np.float64]) -> SegmentPair:
        shard_number = int(np.searchsorted(self._shard_starts, place, side="right")) - 1
        shard = self.corpus.shards[shard_number]
        begin = int(np.searchsorted(shard.sentence_offsets, place - self._shard_starts[shard_number], side="right")) - 1
        document = int(np.searchsorted(shard.document_offsets, begin, side="right")) - 1
        end = _last_sentence(shard, begin, int(shard.document_offsets[document + 1]), max_tokens)
        cut_first, cut_second, split, kind = chances[:4].tolist()
        if not self.pairs:
            return SegmentPair(_fit(_run(shard, begin, end), max_tokens, cut_first))
        sentences = end - begin
        middle = begin + 1 + int(split * (sentences - 1)) if sentences > 1 else end
        first = _run(shard, begin, middle)
        is_random = sentences == 1 or kind < self.sampling.random_next
        if is_random:
            number = int(self._document_starts[shard_number]) + document
            second = self._from_another_document(number, max_tokens - len(first), chances[4:])
        else:
            second = _run(shard, middle, end)
        keep_first, keep_second = truncated_lengths(len(first), len(second), max_tokens)
        return SegmentPair(_fit(first, keep_first, cut_first), _fit(second, keep_second, cut_second), is_random)

    def _from_another_document(self, own: int, max_tokens: int, chances: NDArray[np.float64]) -> NDArray[Any]:
        """A run that starts at a random sentence of another document and fills what A left free."""
        where, *tries = chances.tolist()
        for chance in tries:
            number = int(chance * self.corpus.num_documents)
            if number != own:
                break
        else:
            number = (own + 1) % self.corpus.num_documents
        shard_number = int(np.searchsorted(self._document_starts, number, side="right")) - 1
        shard = self.corpus.shards[shard_number]
        document = number - int(self._document_starts[shard_number])
        start, stop = shard.document_offsets[document : document + 2].tolist()
        begin = start + int(where * (stop - start))
        return _run(shard, begin, _last_sentence(shard, begin, stop, max(1, max_tokens)))


def _last_sentence(shard: Shard, begin: int, stop: int, max_tokens: int) -> int:
    """The end of the run of sentences from ``begin`` that first reaches ``max_tokens`` tokens, or ``stop``."""
    goal = int(shard.sentence_offsets[begin]) + max_tokens
    ends = shard.sentence_offsets[begin + 1 : min(stop, begin + max_tokens) + 1]
    return min(begin + 1 + int(np.searchsorted(ends, goal)), stop)


def _run(shard: Shard, begin: int, end: int) -> NDArray[Any]:
    tokens: NDArray[Any] = shard.tokens[shard.sentence_offsets[begin] : shard.sentence_offsets[end]]
    return tokens


def _fit(tokens: NDArray[Any], keep: int, chance: float) -> NDArray[Any]:
    """``keep`` tokens of a run; each token that goes is taken from the front or the back by the toss of a coin."""
    excess = len(tokens) - keep
    if excess <= 0:
        return tokens
    front = _heads(excess, chance)
    return tokens[front : len(tokens) - (excess - front)]


def _heads(tosses: int, chance: float) -> int:
    """Heads in ``tosses`` tosses, read off the bits of one uniform draw (exact up to its 53 bits, then scaled)."""
    tossed = min(tosses, 53)
    bits = int(chance * 2.0**53) & ((1 << tossed) - 1)
    return bits.bit_count() * tosses // tossed
