"""Whole words, each with its characters: what ELMo and the networks before it read.

A text is split at white space and around punctuation, capitals kept; the rules are those of a cased WordPiece. A token
is a tuple: the number of the word and then its characters (``_spelling.py``). So a word that the vocabulary lacks has
no number of its own and still has letters. Padding is 0 all through: no word, and none of its letters.

Shards of a corpus hold the numbers alone; ``spell_all`` gives them their characters back.

Letters: N words, C characters of a word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, models

from bertkit.contracts import Tokens
from bertkit.errors import data_error, usage_error
from bertkit.storage.atomic import explain_writing, make_folder, read_json, write_file, write_json
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.normalization import NormalizationRules, assemble
from bertkit.text.normalization import SpecialTokens as BertSpecialTokens
from bertkit.text.spelling import NO_WORD, WORD_LENGTH, spell_word
from bertkit.text.tokenizer_files import CONFIG, RULES
from bertkit.text.training import most_frequent_words

_RULES = NormalizationRules(lowercase=False, strip_accents=False)
_LENGTH = "word_length"
_SHORTEST = 3


class SpecialTokens(NamedTuple):
    """The words that no text has. Those that begin and end a sentence are spelled as ``_spelling.py`` knows them."""

    pad: str = "<PAD>"
    unk: str = "<UNK>"
    cls: str = "<S>"
    sep: str = "</S>"


class WordLevel(BaseTokenizer):
    """Words by falling frequency behind the special ones; a token has the number of a word and ``word_length``
    characters. Nothing is hidden from a network that reads words: ``mask_id`` is the unknown word.
    """

    def __init__(
        self, backend: Tokenizer, word_length: int = WORD_LENGTH, source: str = "the vocabulary of words"
    ) -> None:
        super().__init__(backend, SpecialTokens(), model="ELMo", source=source)
        self.word_length = word_length
        self.pad_id, self.unk_id, cls, sep = self.tokens_to_ids(SpecialTokens())
        if self.pad_id != 0:
            raise data_error(f"{source} has {SpecialTokens().pad} as word {self.pad_id}; it must be the first.")
        self.mask_id = self.unk_id
        self.cls_id, self.sep_id = self._token(cls, SpecialTokens().cls), self._token(sep, SpecialTokens().sep)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder that ``save`` wrote."""
        file = Path(path) / RULES
        if not file.is_file():
            raise data_error(f"no vocabulary of words at {path}: it has no {RULES}.")
        config = read_json(Path(path) / CONFIG) if (Path(path) / CONFIG).is_file() else {}
        length = config.get(_LENGTH, WORD_LENGTH) if isinstance(config, dict) else None
        if not isinstance(length, int) or length < _SHORTEST:
            raise data_error(f"{Path(path) / CONFIG}: {_LENGTH} is no number from {_SHORTEST} on.")
        return cls(_read(file), length, str(file))

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` with the words and the rules, and ``tokenizer_config.json`` with ``word_length``."""
        rules = json.dumps(self._description(), indent=1, ensure_ascii=False)
        with explain_writing(folder):
            make_folder(folder)
            write_file(folder / RULES, lambda path: path.write_text(rules, encoding="utf-8", newline="\n"))
            write_json(folder / CONFIG, _config(self.word_length))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rules, the words and their length."""
        return hashlib.sha256(f"{super().fingerprint} {self.word_length}".encode()).hexdigest()

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """Cut one text into words with their characters. Special words typed in it are text unless ``specials``."""
        return self._spell(text, super().encode(text, specials=specials))

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut many texts, in parallel."""
        return [self._spell(text, tokens) for text, tokens in zip(texts, super().encode_batch(texts), strict=True)]

    def spell_all(self, numbers: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """(N, 1 + C) the tokens of words (N,) given by their numbers; the letters of an unknown word are not known."""
        return np.column_stack([numbers.astype(np.int64), self._table[numbers]])

    @cached_property
    def _table(self) -> NDArray[np.int16]:
        """(V, C) the characters of every word."""
        table = np.stack([spell_word(word, length=self.word_length) for word in self.vocabulary]).astype(np.int16)
        table[self.pad_id] = NO_WORD
        return table

    def _spell(self, text: str, tokens: Tokens) -> Tokens:
        """Numbers to tokens; an unknown word is spelled as it stands in the text."""
        places = zip(tokens.ids, tokens.offsets, strict=True)
        words = [
            text[start:end] if number == self.unk_id else self.vocabulary[number] for number, (start, end) in places
        ]
        return Tokens([self._token(*each) for each in zip(tokens.ids, words, strict=True)], tokens.offsets)

    def _token(self, number: int, word: str) -> tuple[int, ...]:
        return (number, *spell_word(word, length=self.word_length).tolist())


def train(texts: Iterable[str], *, vocab_size: int = 50_000, word_length: int = WORD_LENGTH) -> WordLevel:
    """The ``vocab_size`` most frequent words of ``texts``, special ones included; a small corpus has fewer.

    Of words that are equally frequent the first in the alphabet is taken. ``word_length`` counts the marks around the
    letters. ``texts`` are read once, and one is in memory at a time.
    """
    specials = SpecialTokens()
    if vocab_size <= len(specials):
        raise usage_error(f"--vocab-size is {vocab_size}; it must be {len(specials) + 1} or more.")
    if word_length < _SHORTEST:
        raise usage_error(f"word_length is {word_length}; it must be {_SHORTEST} or more: a letter and two marks.")
    words = most_frequent_words(map(replace_surrogates, texts), _assemble({}), size=vocab_size - len(specials))
    if not words:
        raise data_error("there is no text to learn words from: nothing but white space was read.")
    vocabulary = {word: number for number, word in enumerate([*specials, *words])}
    return WordLevel(_assemble(vocabulary), word_length)


def _assemble(vocabulary: Mapping[str, int]) -> Tokenizer:
    """The tokenizer with these words; special ones that ``vocabulary`` lacks are left out."""
    backend = assemble({}, _RULES, BertSpecialTokens())
    backend.model = models.WordLevel(vocab=dict(vocabulary), unk_token=SpecialTokens().unk)
    known = [AddedToken(word, special=True, normalized=False) for word in SpecialTokens() if word in vocabulary]
    backend.add_special_tokens(known)
    return backend


def _read(file: Path) -> Tokenizer:
    description = read_json(file)
    model = description.get("model") if isinstance(description, dict) else None
    kind = model.get("type") if isinstance(model, dict) else None
    if kind != "WordLevel":
        raise data_error(f"{file} is {f'a {kind} tokenizer' if kind else 'no tokenizer'}; words are WordLevel.")
    try:
        return Tokenizer.from_str(json.dumps(description))
    except Exception as error:  # the library raises nothing narrower
        raise data_error(f"{file} is not a tokenizer: {error}.") from error


def _config(word_length: int) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``."""
    return {
        _LENGTH: word_length,
        **{f"{name}_token": word for name, word in SpecialTokens()._asdict().items()},
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
