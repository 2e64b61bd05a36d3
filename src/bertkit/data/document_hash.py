"""Documents known again by a hash of their text; 64 bits are enough for thousands of millions of documents."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

import numpy as np

KEYS = 2**64
"""A hash is a number from 0 to below this."""


class DocumentHash:
    """The hash of a document that comes in pieces. White space around a piece does not count.

    ``first`` is the hash of its first piece, known before the rest is read; ``is_blank`` if there is nothing but
    white space.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self.first: int | None = None
        self.is_blank = True

    def add(self, text: str) -> None:
        """Take the next piece."""
        text = text.strip()
        self.is_blank = self.is_blank and not text
        self._hash.update(text.encode())
        if self.first is None:
            self.first = self.value

    @property
    def value(self) -> int:
        """The hash of all pieces so far."""
        return int.from_bytes(self._hash.digest(), "little")


def count_duplicates(files: Sequence[array[int]]) -> list[int]:
    """For each file the documents whose hash came before, in that file or in one before it."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(np.array(each, dtype=np.uint64) for each in files)])
    is_first = np.zeros(len(hashes), dtype=bool)
    is_first[np.unique(hashes, return_index=True)[1]] = True
    ends = np.cumsum([len(each) for each in files])
    return [int(np.count_nonzero(~part)) for part in np.split(is_first, ends[:-1])]
