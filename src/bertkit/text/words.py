"""Whole words with their characters: the input of ELMo and of the networks before it.

A text is split at white space and around punctuation, and upper case is kept; these are the rules of a cased WordPiece.
A token is a tuple: the id of the word, then its characters (``characters.py``). A word that the vocabulary lacks has
the id of the unknown word and its own characters. Padding is 0 everywhere, as the word and as each of its characters.

Shards of a corpus hold the ids only; ``spell_all`` adds the characters.

Letters: V words of the vocabulary, N words, C characters of a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, models

from bertkit.contracts import Tokens
from bertkit.errors import data_error, usage_error
from bertkit.storage.atomic import read_json
from bertkit.text.backend import MOST_CHARACTERS, build_backend
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.characters import NO_WORD, WORD_LENGTH, spell_word
from bertkit.text.normalization import BertSpecialTokens, NormalizationRules, build_tokenizer
from bertkit.text.tokenizer_files import CONFIG, TOKENIZER, read_config, save_tokenizer
from bertkit.text.training import most_frequent_words

_RULES = NormalizationRules(lowercase=False, strip_accents=False)
_LENGTH = "word_length"
_SHORTEST = 3


class SpecialTokens(NamedTuple):
    """The words that no text becomes. ``<S>`` and ``</S>`` are spelled with one character (``characters.py``)."""

    pad: str = "<PAD>"
    unk: str = "<UNK>"
    cls: str = "<S>"
    sep: str = "</S>"


class WordLevel(BaseTokenizer):
    """A vocabulary of words in order of falling frequency, after the special ones.

    A token has the id of a word and ``word_length`` characters. There is no mask: ``mask_id`` is the unknown word.
    """

    def __init__(
        self, backend: Tokenizer, word_length: int = WORD_LENGTH, source: str = "the vocabulary of words"
    ) -> None:
        specials = SpecialTokens()
        super().__init__(backend, specials, model="ELMo", source=source)
        self.word_length = word_length
        self.pad_id, self.unk_id, cls, sep = self.tokens_to_ids(specials)
        if self.pad_id != 0:
            raise data_error(f"{source} has {specials.pad} as word {self.pad_id}; it must be the first.")
        self.mask_id = self.unk_id
        self.cls_id, self.sep_id = self._token(cls, specials.cls), self._token(sep, specials.sep)
        self.start_id, self.between_ids, self.end_id = self.cls_id, [self.sep_id], self.sep_id

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder that ``save`` wrote."""
        file = Path(path) / TOKENIZER
        if not file.is_file():
            raise data_error(f"no vocabulary of words at {path}: it has no {TOKENIZER}.")
        length = read_config(file.parent).get(_LENGTH, WORD_LENGTH)
        if not isinstance(length, int) or not _SHORTEST <= length <= MOST_CHARACTERS:
            raise data_error(
                f"{file.parent / CONFIG}: {_LENGTH} must be a whole number from {_SHORTEST} to {MOST_CHARACTERS:,}."
            )
        return cls(_read(file), length, str(file))

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json`` with the words and the rules, and ``tokenizer_config.json`` with ``word_length``."""
        save_tokenizer(folder, self._describe(), _config(self.word_length))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rules, the words and their length."""
        return hashlib.sha256(f"{super().fingerprint} {self.word_length}".encode()).hexdigest()

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """The words of one text with their characters. Special words typed in it are text unless ``specials``."""
        return self._spell(text, super().encode(text, specials=specials))

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """The words of many texts, encoded in parallel."""
        return [self._spell(text, tokens) for text, tokens in zip(texts, super().encode_batch(texts), strict=True)]

    def spell_all(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """(N, 1 + C) the tokens of words (N,) given by their ids; an unknown word is spelled ``<UNK>``."""
        return np.column_stack([ids.astype(np.int64), self._characters[ids]])

    @cached_property
    def _characters(self) -> NDArray[np.int16]:
        """(V, C) the characters of every word. int16 holds all 262 ids in a quarter of the memory of int64."""
        table = np.stack([spell_word(word, length=self.word_length) for word in self.vocabulary]).astype(np.int16)
        table[self.pad_id] = NO_WORD
        return table

    def _spell(self, text: str, tokens: Tokens) -> Tokens:
        """Add the characters to ids. An unknown word is spelled as in the text, a known one as in the vocabulary."""
        words = [
            text[start:end] if id == self.unk_id else self.vocabulary[id]
            for id, (start, end) in zip(tokens.ids, tokens.offsets, strict=True)
        ]
        return Tokens([self._token(*each) for each in zip(tokens.ids, words, strict=True)], tokens.offsets)

    def _token(self, id: int, word: str) -> tuple[int, ...]:
        return (id, *_spell_once(word, self.word_length))


@lru_cache(maxsize=1 << 16)
def _spell_once(word: str, length: int) -> tuple[int, ...]:
    """The characters of a word; frequent ones are not spelled again, which took 40 % of the time of ``encode``."""
    return tuple(spell_word(word, length=length).tolist())


def train(texts: Iterable[str], *, vocab_size: int = 50_000, word_length: int = WORD_LENGTH) -> WordLevel:
    """The ``vocab_size`` most frequent words of ``texts``, special ones included; a small corpus has fewer.

    Words of equal frequency are taken in alphabetical order. ``word_length`` includes the two markers. ``texts`` are
    read once, and only one is in memory at a time.
    """
    specials = SpecialTokens()
    if vocab_size <= len(specials):
        raise usage_error(f"--vocab-size is {vocab_size}; it must be at least {len(specials) + 1}.")
    if word_length < _SHORTEST:
        raise usage_error(f"word_length is {word_length}; it must be at least {_SHORTEST}: a byte and two markers.")
    words = most_frequent_words(map(replace_surrogates, texts), _build({}), size=vocab_size - len(specials))
    if not words:
        raise data_error("there is no text to take words from: the input has nothing but white space.")
    return WordLevel(_build({word: id for id, word in enumerate([*specials, *words])}), word_length)


def _build(vocabulary: Mapping[str, int]) -> Tokenizer:
    """The tokenizer with these words; special ones that ``vocabulary`` lacks are left out."""
    backend = build_tokenizer({}, _RULES, BertSpecialTokens())
    # Normalization and splitting are those of a cased WordPiece; only the model differs.
    backend.model = models.WordLevel(vocab=dict(vocabulary), unk_token=SpecialTokens().unk)
    known = [AddedToken(word, special=True, normalized=False) for word in SpecialTokens() if word in vocabulary]
    backend.add_special_tokens(known)
    return backend


def _read(file: Path) -> Tokenizer:
    description = read_json(file)
    model = description.get("model") if isinstance(description, dict) else None
    kind = model.get("type") if isinstance(model, dict) else None
    if kind != "WordLevel":
        found = f"a {kind} tokenizer" if kind else "not a tokenizer"
        raise data_error(f"{file} is {found}; a vocabulary of words has the type WordLevel.")
    return build_backend(description, file)


def _config(word_length: int) -> dict[str, object]:
    """The content of ``tokenizer_config.json``."""
    return {
        _LENGTH: word_length,
        **{f"{name}_token": word for name, word in SpecialTokens()._asdict().items()},
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
