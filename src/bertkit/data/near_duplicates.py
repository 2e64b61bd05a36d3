"""Documents that repeat most of an earlier one, found by MinHash (Broder 1997, "On the resemblance of documents").

The sets that are compared are the sequences of five words of each document. The library is datasketch: it needs only
NumPy and SciPy, which bertkit needs anyway.
"""

from __future__ import annotations

import numpy as np

from bertkit.data.ngrams import NgramHasher
from bertkit.optional import require

_NGRAM = 5
_LEAST_SIMILARITY = 0.8
"""Jaccard similarity: of all sequences of two documents, the share that is in both."""

_PERMUTATIONS = 128
_BITS = np.uint64(0xFFFFFFFF)


class NearDuplicates:
    """Compares every document with all earlier ones that were kept. One of five words or more takes 6 kB of memory."""

    def __init__(self) -> None:
        self._library = require("datasketch", extra="clean", purpose="finding near-duplicates")
        self._index = self._library.MinHashLSH(threshold=_LEAST_SIMILARITY, num_perm=_PERMUTATIONS)
        self._hasher = NgramHasher(_NGRAM)
        self._kept: list[object] = []
        self.start_document()

    def start_document(self) -> None:
        """Begin a document."""
        self._hasher.start_document()
        # The sequences are hashed already.
        self._current = self._library.MinHash(num_perm=_PERMUTATIONS, hashfunc=int)

    def add(self, text: str) -> None:
        """Add the next chunk of the document."""
        self._current.update_batch(np.unique(self._hasher.add(text) & _BITS).tolist())

    def is_repeated(self) -> bool:
        """Whether a document that was kept has at least 80 % of the sequences in common; one of few words has none."""
        return not self._current.is_empty() and any(
            self._current.jaccard(self._kept[number]) >= _LEAST_SIMILARITY
            for number in self._index.query(self._current)
        )

    def keep(self) -> None:
        """Compare later documents with this one too, unless it has too few words to be like any."""
        if self._current.is_empty():
            return
        self._index.insert(len(self._kept), self._current)
        self._kept.append(self._current)
