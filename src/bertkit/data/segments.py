"""Segments of a corpus for pre-training: pairs of consecutive sentences, or single segments (paper, section A.2).

An example is a pure function of (seed, epoch, index): nothing is written to disk, every epoch splits the corpus in
another way, and any example can be made at any time.

The reference code goes through each document from its beginning and passes unused sentences on to the next example
(google-research/bert ``create_pretraining_data.py``). Here the corpus is divided into strides instead, which are as
long as the text that the reference uses per example of full length, and which are shifted by a random amount in every
epoch. An example begins with the sentence in which its stride begins. The end of A, the choice of B and the truncation
are as in the reference, and more than half of the pairs are random, because a single sentence has no next one. Two
things differ: short sequences are chosen per example, where the reference chooses a length per document and so makes
many examples of one with a short length (docs/decisions.md has the figures); and the sentences that follow a pair with
a random B are not used by the next example, but come with the shift of another epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.data.features import truncated_lengths
from bertkit.data.shards import Corpus, Shard, TokenIds
from bertkit.errors import data_error, usage_error
from bertkit.ranges import Share, check_ranges
from bertkit.rng import CounterRng

_OTHER_DOCUMENT_TRIES = 10
_SHARE_USED_BY_A_PAIR = 0.75
"""The share of a row that is new text of the corpus: half of the pairs take B from another document, and of these only
A, which is half of the row on average, is new."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How examples are taken from a corpus; the objectives decide whether they are pairs or single segments.

    ``random_next`` is the share of pairs whose second segment is from another document, ``short_sequences`` the share
    of examples that end with the sentence in which a random shorter length is reached. ``full_sentences`` fills rows
    across the ends of documents, without random shorter lengths (``full_sentences.py``). ``running_text`` fills rows
    with text without special tokens, which may end inside a sentence (``running_text.py``).
    """

    random_next: Share = 0.5
    short_sequences: Share = 0.1
    full_sentences: bool = False
    running_text: bool = False

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.full_sentences and self.running_text:
            raise usage_error("task.sampling.full_sentences and task.sampling.running_text cannot be combined.")

    def needs(self) -> dict[str, str]:
        """The setting that full rows switch off, and what would switch it on."""
        if self.full_sentences:
            return {"short_sequences": "task.sampling.full_sentences=false"}
        return {"short_sequences": "task.sampling.running_text=false"} if self.running_text else {}


@dataclass(frozen=True, slots=True, eq=False)
class RowSegments:
    """The token ids of one or two segments; ``is_random`` is True if the second is from another document."""

    first: TokenIds
    second: TokenIds | None = None
    is_random: bool = False


class StridedSegments:
    """All examples of a corpus, one per stride, each of at most ``max_tokens`` tokens without special tokens.

    ``pairs`` are two segments for next-sentence prediction; otherwise every example is a single segment.
    """

    def __init__(self, corpus: Corpus, sampling: Sampling, *, pairs: bool, max_tokens: int, seed: int) -> None:
        if pairs and corpus.num_documents < 2:
            raise data_error(
                f"{corpus.folder} has one document in this split; next-sentence pairs need two. "
                "Add documents, or train without nsp: --set 'task.objectives=[\"mlm\"]'."
            )
        self.corpus = corpus
        self.sampling = sampling
        self.pairs = pairs
        self.max_tokens = max_tokens
        self.seed = seed
        used = max_tokens * (_SHARE_USED_BY_A_PAIR if pairs else 1.0)
        self.stride = max(1, int(used))
        self._shard_starts = np.cumsum([0, *(len(shard.tokens) for shard in corpus.shards)])
        self._document_starts = np.cumsum([0, *(len(shard.document_offsets) - 1 for shard in corpus.shards)])

    def __len__(self) -> int:
        # A corpus shorter than one stride still gives one example.
        return int(max(1, self.corpus.num_tokens // self.stride))

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[RowSegments]:
        """The examples at ``indices`` in this epoch."""
        # The names of the streams are part of the random numbers: other names would give other examples.
        rng = CounterRng(self.seed, epoch, indices)
        shift = int(CounterRng(self.seed, epoch, np.zeros(1, np.int64)).below("passage.shift", self.stride)[0, 0])
        positions = (indices * self.stride + shift) % self.corpus.num_tokens
        lengths = self._choose_lengths(rng)
        draws = rng.uniform("passage.chances", 5 + _OTHER_DOCUMENT_TRIES)
        return [self._make(*each) for each in zip(positions.tolist(), lengths.tolist(), draws, strict=True)]

    def _choose_lengths(self, rng: CounterRng) -> NDArray[np.int64]:
        """(B,) mostly ``max_tokens``; for a share of ``short_sequences`` a random target of at least 2, as in the
        reference."""
        short = rng.uniform("passage.short")[:, 0] < self.sampling.short_sequences
        lengths = 2 + rng.below("passage.length", self.max_tokens - 1)[:, 0]
        return np.where(short, lengths, self.max_tokens)

    def _make(self, position: int, target: int, draws: NDArray[np.float64]) -> RowSegments:
        """The example at a position: sentences until they have ``target`` tokens. As in the reference only what is
        beyond ``max_tokens`` is cut off, so a short target does not cut sentences.
        """
        shard_number = int(np.searchsorted(self._shard_starts, position, side="right")) - 1
        shard, in_shard = self.corpus.shards[shard_number], position - self._shard_starts[shard_number]
        begin = int(np.searchsorted(shard.sentence_offsets, in_shard, side="right")) - 1
        document = int(np.searchsorted(shard.document_offsets, begin, side="right")) - 1
        end = _end_of_sentences(shard, begin, int(shard.document_offsets[document + 1]), target)
        cut_first, cut_second, split, kind = draws[:4].tolist()
        if not self.pairs:
            first, last = shard.sentence_offsets[begin : begin + 2].tolist()
            if last - first > self.max_tokens:  # from here on, so that all of a sentence longer than a row is read
                start = min(int(in_shard), last - self.max_tokens)
                return RowSegments(shard.tokens[start : start + self.max_tokens])
            return RowSegments(_truncate(_tokens_of(shard, begin, end), self.max_tokens, cut_first))
        sentences = end - begin
        middle = begin + 1 + int(split * (sentences - 1)) if sentences > 1 else end
        first = _tokens_of(shard, begin, middle)
        # A single sentence has no next one, so its pair is always random, as in the reference.
        is_random = sentences == 1 or kind < self.sampling.random_next
        if is_random:
            number = int(self._document_starts[shard_number]) + document
            second = self._from_another_document(number, target - len(first), draws[4:])
        else:
            second = _tokens_of(shard, middle, end)
        keep_first, keep_second = truncated_lengths(len(first), len(second), self.max_tokens)
        if len(first) > self.max_tokens:  # one sentence, as above; the reference, which reads each once, cuts both ends
            start = min(int(in_shard - shard.sentence_offsets[begin]), len(first) - keep_first)
            first = first[start : start + keep_first]
        return RowSegments(
            _truncate(first, keep_first, cut_first), _truncate(second, keep_second, cut_second), is_random
        )

    def _from_another_document(self, own: int, max_tokens: int, draws: NDArray[np.float64]) -> TokenIds:
        """A segment of another document, from a random sentence on, for the part of the row that A leaves free."""
        sentence_draw, *document_draws = draws.tolist()
        for draw in document_draws:
            number = int(draw * self.corpus.num_documents)
            if number != own:
                break
        else:
            number = (own + 1) % self.corpus.num_documents
        shard_number = int(np.searchsorted(self._document_starts, number, side="right")) - 1
        shard = self.corpus.shards[shard_number]
        document = number - int(self._document_starts[shard_number])
        start, stop = shard.document_offsets[document : document + 2].tolist()
        place = sentence_draw * (stop - start)
        begin = start + int(place)
        end = _end_of_sentences(shard, begin, stop, max(1, max_tokens))
        tokens = _tokens_of(shard, begin, end)
        if end == begin + 1 and len(tokens) > self.max_tokens:  # any part of a sentence longer than a row
            skipped = int(place % 1 * (len(tokens) - self.max_tokens + 1))
            return tokens[skipped : skipped + self.max_tokens]
        return tokens


def _end_of_sentences(shard: Shard, begin: int, stop: int, max_tokens: int) -> int:
    """The end (exclusive) of the fewest sentences from ``begin`` that have ``max_tokens`` tokens; at most ``stop``."""
    goal = int(shard.sentence_offsets[begin]) + max_tokens
    ends = shard.sentence_offsets[begin + 1 : min(stop, begin + max_tokens) + 1]
    return min(begin + 1 + int(np.searchsorted(ends, goal)), stop)


def _tokens_of(shard: Shard, begin: int, end: int) -> TokenIds:
    """The tokens of sentences ``begin`` to ``end`` - 1."""
    return shard.tokens[shard.sentence_offsets[begin] : shard.sentence_offsets[end]]


def _truncate(tokens: TokenIds, keep: int, draw: float) -> TokenIds:
    """``keep`` tokens of a segment; a coin decides for each removed token whether it is the first or the last one."""
    excess = len(tokens) - keep
    if excess <= 0:
        return tokens
    front = _count_heads(excess, draw)
    return tokens[front : len(tokens) - (excess - front)]


def _count_heads(tosses: int, draw: float) -> int:
    """Heads in ``tosses`` coin tosses, counted in the bits of one uniform number.

    It has 53 bits; beyond 53 tosses their count is scaled.
    """
    tossed = min(tosses, 53)
    bits = int(draw * 2.0**53) & ((1 << tossed) - 1)
    return bits.bit_count() * tosses // tossed
