"""Words as characters, for ELMo: the ids of letters and marks (``_spelling.py``), and sentences of such words.

Letters: T words, C characters a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertkit.text.spelling import NO_WORD, NUM_CHARACTERS, WORD_LENGTH, spell_word

__all__ = ["NO_WORD", "NUM_CHARACTERS", "WORD_LENGTH", "spell_sentence", "spell_word"]


def spell_sentence(words: Sequence[str], *, length: int = WORD_LENGTH) -> NDArray[np.int64]:
    """(T + 2, C) the ids of a sentence: the word that begins it, its own words, and the word that ends it."""
    return np.stack([spell_word(word, length=length) for word in ("<S>", *words, "</S>")])
