"""Rows filled with whole sentences across the boundaries of documents (RoBERTa, section 4.2: FULL-SENTENCES).

Every sentence of the corpus is in one row, in the order of the corpus. A row ends where the next sentence does not fit,
and at the end of a shard. A separator token is between two documents. A sentence that is longer than a row is split
over several. The rows are the same in every epoch, as in fairseq (``break_mode`` ``complete``); which tokens are masked
may differ.

Positions count the tokens of a shard from its beginning, with one separator after every document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertkit.data.segments import RowSegments
from bertkit.data.shards import Corpus, Shard, TokenIds


class FullSentences:
    """All rows of a corpus of at most ``max_tokens`` tokens, including the separators between documents."""

    def __init__(self, corpus: Corpus, *, max_tokens: int, sep_id: int) -> None:
        self._separator = np.array([sep_id])
        self._shards = corpus.shards
        self._document_starts = [_find_document_starts(shard) for shard in corpus.shards]
        self._rows = [_find_rows(shard, max_tokens) for shard in corpus.shards]
        self._row_starts = np.cumsum([0, *map(len, self._rows)])

    def __len__(self) -> int:
        return int(self._row_starts[-1])

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[RowSegments]:
        """The rows at ``indices``, without special tokens at their ends; ``epoch`` is ignored."""
        numbers = np.searchsorted(self._row_starts, indices, side="right") - 1
        return [
            RowSegments(self._read(shard, *self._rows[shard][row].tolist()))
            for shard, row in zip(numbers.tolist(), (indices - self._row_starts[numbers]).tolist(), strict=True)
        ]

    def _read(self, shard: int, begin: int, end: int) -> TokenIds:
        """The tokens of one row, document by document."""
        starts, tokens = self._document_starts[shard], self._shards[shard].tokens
        document = int(np.searchsorted(starts, begin, side="right")) - 1
        parts: list[TokenIds] = []
        while begin < end:
            stop = min(end, int(starts[document + 1]) - 1)
            # The tokens of the shard have no separators, of which ``document`` precede this position.
            parts += [tokens[begin - document : stop - document], self._separator]
            document += 1
            begin = int(starts[document])
        return np.concatenate(parts[:-1])


def _find_document_starts(shard: Shard) -> NDArray[np.int64]:
    """The position where every document begins, and the position after the last document."""
    starts: NDArray[np.int64] = shard.sentence_offsets[shard.document_offsets]
    return starts + np.arange(len(starts))


def _find_rows(shard: Shard, max_tokens: int) -> NDArray[np.int64]:
    """(rows, 2) the positions where every row begins and ends."""
    sentences = np.diff(shard.document_offsets)
    ends = shard.sentence_offsets[1:] + np.repeat(np.arange(len(sentences)), sentences)
    ends_document = np.zeros(len(ends), dtype=bool)
    ends_document[shard.document_offsets[1:] - 1] = True
    rows: list[tuple[int, int]] = []
    begin, last = 0, int(ends[-1])
    while begin < last:
        sentence = int(np.searchsorted(ends, begin + max_tokens, side="right")) - 1
        fits = sentence >= 0 and ends[sentence] > begin
        end = int(ends[sentence]) if fits else begin + max_tokens
        rows.append((begin, end))
        # The separator after the last document of a row is in no row.
        begin = end + int(fits and ends_document[sentence])
    return np.array(rows)
