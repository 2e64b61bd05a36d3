"""Sequences of consecutive words of a text as 64-bit numbers, for finding texts that share them."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from bertkit.data.document_hash import hash_text
from bertkit.text.marks import remove_marks

_WORD = re.compile(r"[^\W_]+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplication by it loses no bit: 2^64 divided by the golden ratio (Knuth, volume 3, section 6.4)."""

_MOST_WORDS = 1_000_000
_LONGEST_WORD = 50


class NgramHasher:
    """Hashes all sequences of ``length`` words of a document that comes in chunks.

    Case and punctuation are ignored, and marks, such as the vowels of Hindi: without them a word stays whole.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._words = _WordHashes()
        self._last = np.zeros(0, np.uint64)

    def start_document(self) -> None:
        """Begin a document: its first words do not continue those before."""
        self._last = np.zeros(0, np.uint64)

    def add(self, text: str) -> NDArray[np.uint64]:
        """The hashes (N,) of the sequences that end in ``text``, of a document of N + ``length`` - 1 words or more."""
        words = _WORD.findall(remove_marks(text).lower())
        added = np.fromiter(map(self._words.__getitem__, words), np.uint64, len(words))
        joined = np.concatenate([self._last, added])
        count = max(0, len(joined) - self.length + 1)
        self._last = joined[count:]
        hashes = np.zeros(count, np.uint64)
        for begin in range(self.length if count else 0):
            hashes = hashes * _MULTIPLIER + joined[begin : begin + count]
        return hashes


class _WordHashes(dict[str, int]):
    """The hash of every word, kept for up to a million words of 50 characters or less."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        value = hash_text(word)
        # A text without spaces is one word per chunk, of up to 200,000 characters.
        if len(word) <= _LONGEST_WORD:
            self[word] = value
        return value
