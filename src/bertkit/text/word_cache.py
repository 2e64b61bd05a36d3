"""Ids of texts word by word: every different word is split into subwords once, and then looked up.

A word is the text between two spaces. Under BERT's rules the ids of a text are those of its words, one after the
other, and a text repeats few words many times.

Letters: N tokens.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer

from bertkit.errors import data_error
from bertkit.text.backend import list_rules
from bertkit.text.normalization import PATTERNS_WITHOUT_SPACES

BREAK = "\0"
"""Between texts that are encoded together. Under BERT's rules it is in no text, because they drop it."""

_MOST_WORDS = 1 << 20
"""Words that are kept, in some 200 MB; then the cache begins again. With a quarter of it 124 MB of text take 27 %
longer, with twice as many 3 % longer."""

_LONGEST_WORD = 40
"""Characters of a word that is kept. In text without spaces a word is a sentence, which hardly ever comes again."""

_WORD_SPLITTERS = ("BertPreTokenizer", "WhitespaceSplit", "Whitespace")
"""Rules that split at white space, before any other rule."""
_INSIDE_WORDS = (*_WORD_SPLITTERS, "Digits", "Punctuation", "Sequence", "Split")
_NORMALIZERS = ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Sequence", "StripAccents")
"""Rules for single characters, or for neighbours that no space separates."""


class TextEncoder:
    """Encodes texts in which ``BREAK`` separates what is encoded apart; special tokens in them are ordinary text.

    ``backend`` is changed: it gets a token for BREAK, whose id is ``break_id``. Raises a data error if it has one.
    """

    def __init__(self, backend: Tokenizer) -> None:
        if any(BREAK in token for token in backend.get_vocab()):
            raise data_error("the tokenizer has a token with the character NUL, which separates sentences here.")
        self._backend = backend
        self._cached = splits_at_spaces(backend)
        backend.encode_special_tokens = True
        backend.add_tokens([AddedToken(BREAK, normalized=False)])
        break_id = backend.token_to_id(BREAK)
        assert break_id is not None
        self.break_id: int = break_id
        self._ids = self._first_ids()

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.uint32]]:
        """The ids of each text, (N,), with ``break_id`` for every BREAK. Every text ends with one."""
        if not self._cached:
            return self._split_into_subwords(texts)
        ids = self._look_up("".join(texts).replace("\n", " ").replace(BREAK, f" {BREAK} ").split(" "))
        breaks = np.flatnonzero(ids == self.break_id)
        last = np.cumsum([text.count(BREAK) for text in texts]) - 1
        return np.split(ids, breaks[last[:-1]] + 1)

    def _look_up(self, words: Sequence[str]) -> NDArray[np.uint32]:
        """The ids of words, from the cache or into it."""
        is_new = map(operator.is_, map(self._ids.get, words), itertools.repeat(None))
        new = list(dict.fromkeys(itertools.compress(words, is_new)))
        if new:
            if len(self._ids) + len(new) > _MOST_WORDS:
                self._ids = self._first_ids()
                new = list(set(words) - self._ids.keys())
            (ids,) = self._split_into_subwords([BREAK.join([*new, ""])])
            ends = np.flatnonzero(ids == self.break_id).tolist()
            starts = [0, *(end + 1 for end in ends[:-1])]
            self._ids |= {word: ids[start:end].tobytes() for word, start, end in zip(new, starts, ends, strict=True)}
        found = np.frombuffer(b"".join(map(self._ids.__getitem__, words)), dtype=np.uint32)
        for word in new:
            if len(word) > _LONGEST_WORD:
                del self._ids[word]
        return found

    def _split_into_subwords(self, texts: Sequence[str]) -> list[NDArray[np.uint32]]:
        # Without offsets, which cost time and which nobody asks for here.
        encoded = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(each.ids, dtype=np.uint32) for each in encoded]

    def _first_ids(self) -> dict[str, bytes]:
        return {"": b"", BREAK: np.uint32(self.break_id).tobytes()}


def splits_at_spaces(backend: Tokenizer) -> bool:
    """Whether the ids of any text are those of the words between its spaces and line breaks.

    They are with BERT's rules. They are not in byte-level BPE, where a space belongs to the word after it, and unknown
    rules, such as replacements that may match a space, are taken not to be either.
    """
    description = json.loads(backend.to_str())
    splitters = [rule for rule in list_rules(description["pre_tokenizer"]) if isinstance(rule, dict)]
    normalizers = [rule for rule in list_rules(description["normalizer"]) if isinstance(rule, dict)]
    types = [rule["type"] for rule in splitters]
    first = next((each for each in types if each != "Sequence"), None)
    return (
        first in _WORD_SPLITTERS
        and all(each in _INSIDE_WORDS for each in types)
        and all(rule["type"] in _NORMALIZERS or _matches_no_space(rule) for rule in normalizers)
        and all(_is_one_word(token["content"], backend) for token in description["added_tokens"])
        and not description["model"].get("dropout")
    )


def _is_one_word(token: str, backend: Tokenizer) -> bool:
    """Whether an added token has no white space, nor gets any by normalization, as an acute accent does from NFKC."""
    normalized = backend.normalizer.normalize_str(token) if backend.normalizer is not None else token
    return not any(character.isspace() for character in token + normalized)


def _matches_no_space(rule: Mapping[str, Any]) -> bool:
    return rule["type"] == "Replace" and rule["pattern"].get("Regex") in PATTERNS_WITHOUT_SPACES
