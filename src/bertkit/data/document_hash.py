"""Hashes of texts, and duplicate documents found by them; 64 bits are enough for billions of documents."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

import numpy as np

KEYS = 2**64
"""A hash is a number from 0 to KEYS - 1."""


def hash_text(text: str) -> int:
    """The hash of a text, the same in every process and on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little")


class DocumentHash:
    """The hash of a document that comes in chunks. White space around a chunk is ignored.

    ``is_blank`` is True while there is nothing but white space.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self.is_blank = True

    def add(self, text: str) -> None:
        """Add the next chunk."""
        text = text.strip()
        self.is_blank = self.is_blank and not text
        self._hash.update(text.encode())

    @classmethod
    def join(cls, parts: Sequence[int]) -> int:
        """The hash of a document that was divided, from the hashes of its parts that are not blank."""
        if len(parts) == 1:
            return parts[0]
        joined = hashlib.blake2b(np.array(parts, dtype="<u8").tobytes(), digest_size=8)
        return int.from_bytes(joined.digest(), "little")

    @property
    def value(self) -> int:
        """The hash of all chunks so far."""
        return int.from_bytes(self._hash.digest(), "little")


def count_duplicates(files: Sequence[array[int]]) -> list[int]:
    """For each file, given as the hashes of its documents: how many occurred before, in it or in an earlier file."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(np.array(each, dtype=np.uint64) for each in files)])
    is_first = np.zeros(len(hashes), dtype=bool)
    # np.unique gives the index of the first occurrence of each value.
    is_first[np.unique(hashes, return_index=True)[1]] = True
    ends = np.cumsum([len(each) for each in files])
    return [int(np.count_nonzero(~file)) for file in np.split(is_first, ends[:-1])]
