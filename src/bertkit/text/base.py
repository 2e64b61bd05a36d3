"""What tokenizers of word pieces have in common: a vocabulary, the rules of cutting, and their use.

All stand on the ``tokenizers`` library; what differs is how words become pieces and what the special ones are called.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from bertkit.batch import Token
from bertkit.contracts import Tokens
from bertkit.errors import data_error, usage_error

_SURROGATE = re.compile("[\ud800-\udfff]")
_LETTER_OF_NO_VOCABULARY = "\uffff"


class BaseTokenizer:
    """A vocabulary and the rules of cutting; ``specials`` are the spellings of the pieces that no text becomes.

    Raises a data error that names ``source`` where the vocabulary lacks one of them or has holes, and says which
    ``model`` it was for.
    """

    cls_id: Token
    sep_id: Token

    def __init__(self, backend: Tokenizer, specials: Sequence[str], *, model: str, source: str) -> None:
        self._backend = backend
        self._backend.encode_special_tokens = True  # as the text that they are
        ids: dict[str, int] = backend.get_vocab()
        missing = [piece for piece in specials if piece not in ids]
        if missing:
            raise data_error(f"{source} has no {', '.join(missing)}; {model} needs {', '.join(specials)}.")
        if sorted(ids.values()) != list(range(len(ids))):
            raise data_error(f"{source} has {len(ids):,} pieces whose ids are not 0 to {len(ids) - 1:,}.")
        self._ids = ids
        self._special_tokens = list(specials)
        self.vocabulary: list[str] = sorted(ids, key=lambda piece: ids[piece])
        self.vocab_size = len(ids)

    def to_json(self) -> str:
        """All of it as one string, for another process."""
        return json.dumps({"rules": self._description(), "specials": self._special_tokens})

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rules and the vocabulary: equal if and only if texts become the same ids."""
        description = self._description()
        parts = {name: description[name] for name in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        saved = json.dumps([parts, self._special_tokens], sort_keys=True)
        return hashlib.sha256(saved.encode()).hexdigest()

    @cached_property
    def cased(self) -> bool:
        """Whether capitals are kept."""
        return self.pre_tokenize("A") != self.pre_tokenize("a")

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """Cut one text. Offsets are characters of ``text`` itself, whatever the rules did to it.

        Special pieces typed in the text are text, or with ``specials`` what they stand for; none are added.
        """
        backend = self._backend_with_specials if specials else self._backend
        (encoded,) = _encode(backend.encode_batch, [text])
        return Tokens(encoded.ids, _with_marks(text, encoded.offsets))

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut many texts, in parallel."""
        encoded = _encode(self._backend.encode_batch, texts)
        return [Tokens(each.ids, _with_marks(text, each.offsets)) for text, each in zip(texts, encoded, strict=True)]

    def encode_ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts, in parallel and without offsets, which is faster."""
        return [each.ids for each in _encode(self._backend.encode_batch_fast, texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: pieces of a word joined, special pieces left in."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text

    def id_to_token(self, id: int) -> str:
        """The piece with this id."""
        return self.vocabulary[id]

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The letters of a piece without the marks of the vocabulary, and whether they continue the word before."""
        return self.id_to_token(id), False

    @cached_property
    def continues_word(self) -> NDArray[np.bool_]:
        """(V,) True for the pieces that continue a word, which whole-word masking takes together."""
        return np.array([self.surface_form(number)[1] for number in range(self.vocab_size)])

    @property
    def start_id(self) -> Token:
        """What begins a row."""
        return self.cls_id

    @property
    def between_ids(self) -> Sequence[Token]:
        """What stands between the two texts of a pair."""
        return [self.sep_id]

    @property
    def end_id(self) -> Token:
        """What ends a row."""
        return self.sep_id

    def tokens_to_ids(self, pieces: Iterable[str]) -> list[int]:
        """The ids of pieces, spelled as in the vocabulary."""
        try:
            return [self._ids[piece] for piece in pieces]
        except KeyError as error:
            raise usage_error(f'the vocabulary has no piece "{error.args[0]}".') from error

    def pre_tokenize(self, text: str) -> list[str]:
        """``text`` after the rules and before pieces are looked up."""
        plain = self._backend.normalizer.normalize_str(text) if self._backend.normalizer is not None else text
        if self._backend.pre_tokenizer is None:
            return [plain]
        return [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(plain)]

    def _description(self) -> dict[str, Any]:
        """The content of ``tokenizer.json``."""
        description: dict[str, Any] = json.loads(self._backend.to_str())
        return description

    @cached_property
    def _backend_with_specials(self) -> Tokenizer:
        backend = Tokenizer.from_str(self._backend.to_str())
        backend.encode_special_tokens = False
        return backend


def replace_surrogates(text: str) -> str:
    """``text`` as the library takes it: JSON can hold half a surrogate pair."""
    return _SURROGATE.sub(_LETTER_OF_NO_VOCABULARY, text)


def _encode(encode_batch: Callable[..., list[Encoding]], texts: Sequence[str]) -> list[Encoding]:
    """Run the library, and again on mended texts if it refuses."""
    try:
        return encode_batch(list(texts), add_special_tokens=False)
    except TypeError:
        return encode_batch([replace_surrogates(text) for text in texts], add_special_tokens=False)


def _with_marks(text: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Offsets that take in the marks and the Jamo behind a letter, which the library leaves out where rules drop or
    compose them."""
    if text.isascii():
        return offsets
    limits = [start for start, _ in [*offsets, (len(text), 0)][1:]]
    covered = []
    for (start, end), limit in zip(offsets, limits, strict=True):
        while end < limit and _is_mark(text[end]):
            end += 1
        covered.append((start, end))
    return covered


def _is_mark(letter: str) -> bool:
    return "\u1160" <= letter <= "\u11ff" or unicodedata.category(letter) == "Mn"
