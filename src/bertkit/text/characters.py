"""Words as characters, as ELMo reads them: the UTF-8 bytes of a word between two markers, every word equally long.

Ids are those of allenai/bilm-tf (``data.py``, ``UnicodeCharsVocabulary`` and ``Batcher``) and of allennlp
(``ELMoCharacterMapper``). A word is truncated *by bytes*, so the last character of a long word may be cut in two. There
is no unknown word.

| id        | meaning                                                         |
|-----------|-----------------------------------------------------------------|
| 0         | padding: no word at all, at the end of a short sentence         |
| 1 to 256  | a byte of UTF-8, plus 1                                         |
| 257, 258  | the only "character" of the words that begin and end a sentence |
| 259, 260  | the beginning and the end of a word                             |
| 261       | padding inside a short word; the network reads it as a character |

The published networks were trained with 261 ids, without the first, and are used with all 262.

Letters: T words, C characters of a word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NUM_CHARACTERS = 262
NO_WORD = 0
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, NO_CHARACTER = 257, 258, 259, 260, 261
WORD_LENGTH = 50
"""Characters of a word in the published networks, with both markers."""

_SENTENCE_MARKERS = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}


def spell_word(word: str, *, length: int = WORD_LENGTH) -> NDArray[np.int64]:
    """(C,) the ids of one word: its first ``length - 2`` bytes between the markers.

    Lone surrogates are left out. The words ``<S>`` and ``</S>`` are the markers of a sentence, as in the original.
    """
    assert length >= 3, "a word needs at least 3 characters: a byte and two markers"
    marker = _SENTENCE_MARKERS.get(word)
    characters = [marker] if marker else [byte + 1 for byte in word.encode("utf-8", "ignore")[: length - 2]]
    ids = np.full(length, NO_CHARACTER, dtype=np.int64)
    ids[: len(characters) + 2] = [BEGIN_WORD, *characters, END_WORD]
    return ids
