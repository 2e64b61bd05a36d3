"""Blocks of text that are held out of training as a whole, and which of them are.

A short document is one block; a longer one is several blocks of whole sentences. Every block has a key, a hash of its
text, and the blocks whose keys are below a limit are held out. So all copies of a block are in the same split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bertkit.data.document_hash import KEYS, hash_text

_LEAST_CHARACTERS = 500
"""About four rows of 32 tokens, or one of 128."""

_HELD_OUT_BLOCKS = 32
"""Blocks that are held out if the text is longer than they are: with fewer, their loss depends on their choice."""

_LEAST_BLOCKS = 2
"""Next-sentence pairs need two documents."""

_TOLERANCE = 4 / 3
_MOST_HELD_OUT = 0.25


@dataclass(frozen=True, slots=True)
class Block:
    """Sentences ``begin`` to ``end`` - 1 of a chunk, and the key of their text."""

    begin: int
    end: int
    key: int


def block_characters(total_bytes: int, heldout: float) -> int:
    """Characters of a block in a corpus of ``total_bytes``, of which a share of ``heldout`` is held out."""
    return max(_LEAST_CHARACTERS, int(total_bytes * heldout / _HELD_OUT_BLOCKS))


def cut_blocks(sentences: Sequence[str], characters: int) -> list[Block]:
    """Divide the sentences of a chunk into blocks of equal length, none of them much shorter than ``characters``."""
    ends = np.cumsum([len(sentence) for sentence in sentences])
    if not len(ends):
        return []
    count = max(1, int(ends[-1]) // characters)
    goals = np.arange(1, count) * (ends[-1] / count)
    bounds = np.unique([0, *(np.searchsorted(ends, goals) + 1), len(ends)]).tolist()
    return [Block(begin, end, hash_text("\n".join(sentences[begin:end]))) for begin, end in pairwise(bounds)]


def choose_limit(keys: Sequence[int], tokens: Sequence[int], heldout: float) -> int:
    """The limit below which the keys of held-out blocks are: about ``heldout`` of all ``tokens``; 0 holds out nothing.

    Usually the limit is the share ``heldout`` of the range of keys, so that a block is in the same split of every
    corpus. If that holds out far too many or too few tokens, as happens with few blocks, those with the lowest keys are
    held out, as many as come nearest to ``heldout``. At least two blocks are held out. If these are more than a quarter
    of the tokens, nothing is.
    """
    if not heldout:
        return 0
    distinct, places = np.unique(np.array(keys, dtype=np.uint64), return_inverse=True)
    sums = np.cumsum(np.bincount(places, weights=tokens))
    goal = heldout * sums[-1]
    usual = int(heldout * KEYS)
    count = int(np.searchsorted(distinct, np.uint64(usual)))
    if _LEAST_BLOCKS <= count < len(distinct) and goal / _TOLERANCE <= sums[count - 1] <= goal * _TOLERANCE:
        return usual
    counts = np.arange(_LEAST_BLOCKS, len(distinct))
    if not len(counts):
        return 0
    count = int(counts[np.argmin(np.abs(sums[counts - 1] - goal))])
    if sums[count - 1] > max(_MOST_HELD_OUT * sums[-1], goal * _TOLERANCE):
        return 0
    return int(distinct[count])
