"""Words as characters, as ELMo reads them: the bytes of a word between marks, every word equally long.

Ids are those of allenai/bilm-tf (``data.py``, ``UnicodeCharsVocabulary`` and ``Batcher``) and of allennlp
(``ELMoCharacterMapper``). A word is cut to fit *by bytes*, so the last letter of a long word may be half a letter.
There is no unknown word.

| id        | stands for                                                  |
|-----------|-------------------------------------------------------------|
| 0         | no word at all: what fills up a short sentence              |
| 1 to 256  | a byte of UTF-8, plus 1                                     |
| 257, 258  | the "letter" of the words that begin and end a sentence     |
| 259, 260  | the beginning and the end of a word                         |
| 261       | no letter: what fills up a short word, a character that the network reads |

The published networks were trained on 261 ids without the first and are used with all 262.

Letters: C characters a word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NUM_CHARACTERS = 262
NO_WORD = 0
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, NO_LETTER = 257, 258, 259, 260, 261
WORD_LENGTH = 50
"""Characters of a word in the published networks, the two marks counted."""

_SENTENCE_MARKS = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}


def spell_word(word: str, *, length: int = WORD_LENGTH) -> NDArray[np.int64]:
    """(C,) the ids of one word: its first ``length - 2`` bytes between the marks.

    Halves of surrogate pairs are left out. The words ``<S>`` and ``</S>`` are the marks of a sentence, here as in the
    original.
    """
    assert length >= 3, f"no letter fits between two marks in {length} characters"
    mark = _SENTENCE_MARKS.get(word)
    letters = [mark] if mark else [byte + 1 for byte in word.encode("utf-8", "ignore")[: length - 2]]
    ids = np.full(length, NO_LETTER, dtype=np.int64)
    ids[: len(letters) + 2] = [BEGIN_WORD, *letters, END_WORD]
    return ids
