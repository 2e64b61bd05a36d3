"""Rows filled with whole sentences that go on over the ends of documents (RoBERTa, section 4.2: FULL-SENTENCES).

Every sentence of the corpus is in one row, in the order of the corpus; a row ends where the next sentence does not fit,
and at the end of a shard. A separator stands between two documents. A sentence that is longer than a row fills as many
as it needs. The rows are the same in every epoch, as fairseq's are (``break_mode`` ``complete``); masks need not be.

Places are counted in tokens from the beginning of a shard, with a separator behind every document.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.data.segment_pairs import SegmentPair
from bertkit.data.shards import Corpus, Shard


class FullSentences:
    """All rows of a corpus of at most ``max_tokens`` tokens, the separators between documents counted."""

    def __init__(self, corpus: Corpus, *, max_tokens: int, sep_id: int) -> None:
        self._separator = np.array([sep_id])
        self._shards = corpus.shards
        self._documents = [_place_documents(shard) for shard in corpus.shards]
        self._rows = [_lay_rows(shard, max_tokens) for shard in corpus.shards]
        self._row_starts = np.cumsum([0, *map(len, self._rows)])

    def __len__(self) -> int:
        return int(self._row_starts[-1])

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[SegmentPair]:
        """The rows at ``indices``; ``epoch`` changes nothing."""
        numbers = np.searchsorted(self._row_starts, indices, side="right") - 1
        return [
            SegmentPair(self._read(shard, *self._rows[shard][row].tolist()))
            for shard, row in zip(numbers.tolist(), (indices - self._row_starts[numbers]).tolist(), strict=True)
        ]

    def _read(self, shard: int, begin: int, end: int) -> NDArray[Any]:
        """The tokens of one row, document by document."""
        places, tokens = self._documents[shard], self._shards[shard].tokens
        document = int(np.searchsorted(places, begin, side="right")) - 1
        parts: list[NDArray[Any]] = []
        while begin < end:
            stop = min(end, int(places[document + 1]) - 1)
            parts += [tokens[begin - document : stop - document], self._separator]
            document += 1
            begin = int(places[document])
        return np.concatenate(parts[:-1])


def _place_documents(shard: Shard) -> NDArray[np.int64]:
    """Where every document begins, and where another would."""
    starts: NDArray[np.int64] = shard.sentence_offsets[shard.document_offsets]
    return starts + np.arange(len(starts))


def _lay_rows(shard: Shard, max_tokens: int) -> NDArray[np.int64]:
    """Begin and end of every row."""
    sentences = np.diff(shard.document_offsets)
    ends = shard.sentence_offsets[1:] + np.repeat(np.arange(len(sentences)), sentences)
    closes = np.zeros(len(ends), dtype=bool)
    closes[shard.document_offsets[1:] - 1] = True
    rows: list[tuple[int, int]] = []
    begin, last = 0, int(ends[-1])
    while begin < last:
        place = int(np.searchsorted(ends, begin + max_tokens, side="right")) - 1
        fits = place >= 0 and ends[place] > begin
        end = int(ends[place]) if fits else begin + max_tokens
        rows.append((begin, end))
        begin = end + int(fits and closes[place])
    return np.array(rows)
