"""WordPiece, BERT's tokenizer, on the ``tokenizers`` library: loading, training, use.

The order of things is that of google-research/bert ``tokenization.py``: drop control characters, split at white space
and around Chinese characters, lower the case, drop accents, split at punctuation, then take the longest known piece
again and again. Facts that surprise:

* Dropping accents decomposes (NFD), which tears Hangul into Jamo. The published uncased vocabularies were made that
  way and are read that way; a vocabulary trained here composes again (NFC) unless told otherwise.
* A cased tokenizer does not normalise at all: a letter and the same letter with a combining mark differ.
* ``[MASK]`` in a text is six characters of text, here as in the original; ``specials=True`` makes it the piece.
* A ``tokenizer.json`` is taken at its word. Those of Hugging Face differ from the original in rare characters.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Encoding, Tokenizer

from bertkit.contracts import Tokens
from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.storage import write_file, write_json
from bertkit.text._files import CONFIG, RULES, VOCABULARY, config_of, read_folder
from bertkit.text._learning import learn_pieces
from bertkit.text._rules import CONTINUES, Rules, Specials, UnicodeForm, assemble

_SMALLEST = 2 * len(Specials._fields)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LETTER_OF_NO_VOCABULARY = "\uffff"


class WordPiece:
    """A vocabulary and the rules of cutting. Ids of special pieces are looked up by name in the vocabulary."""

    def __init__(self, backend: Tokenizer, specials: Specials | None = None, source: str = "the vocabulary") -> None:
        self._backend = backend
        self._backend.encode_special_tokens = True  # as the text that they are
        self._specials = specials or Specials()
        ids: dict[str, int] = backend.get_vocab()
        missing = [piece for piece in self._specials if piece not in ids]
        if missing:
            raise data_error(f"{source} has no {', '.join(missing)}; BERT needs {', '.join(self._specials)}.")
        if sorted(ids.values()) != list(range(len(ids))):
            raise data_error(f"{source} has {len(ids):,} pieces whose ids are not 0 to {len(ids) - 1:,}.")
        self._ids = ids
        self.pieces: list[str] = sorted(ids, key=lambda piece: ids[piece])
        self.vocab_size = len(ids)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (ids[name] for name in self._specials)

    @classmethod
    def load(cls, path: Path | str) -> WordPiece:
        """Read a folder with ``tokenizer.json`` or ``vocab.txt`` and perhaps ``tokenizer_config.json``, or one file.

        A bare ``vocab.txt`` is read as cased when it has pieces with capitals.
        """
        backend, specials, file = read_folder(Path(path))
        return cls(backend, specials, str(file))

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json`` and ``vocab.txt``, for Hugging Face's loaders too."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BertkitError(f"cannot write to {folder}: {error.strerror}. Choose another folder.") from error
        rules = json.dumps(self._description(), indent=1, ensure_ascii=False)
        pieces = "\n".join(self.pieces) + "\n"
        write_file(folder / RULES, lambda path: path.write_text(rules, encoding="utf-8", newline="\n"))
        write_file(folder / VOCABULARY, lambda path: path.write_text(pieces, encoding="utf-8", newline="\n"))
        flags = {
            "do_lower_case": not self.cased,
            "strip_accents": self.words("é") == ["e"],
            "tokenize_chinese_chars": len(self.words("中中")) == 2,
        }
        write_json(folder / CONFIG, config_of(self._specials, **flags))

    def to_json(self) -> str:
        """All of it as one string, for another process."""
        return json.dumps({"rules": self._description(), "specials": self._specials})

    @classmethod
    def from_json(cls, saved: str) -> WordPiece:
        """The tokenizer that ``to_json`` wrote down."""
        parts = json.loads(saved)
        return cls(Tokenizer.from_str(json.dumps(parts["rules"])), Specials(*parts["specials"]))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rules and the vocabulary: equal if and only if texts become the same ids."""
        description = self._description()
        parts = {name: description[name] for name in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        saved = json.dumps([parts, self._specials], sort_keys=True)
        return hashlib.sha256(saved.encode()).hexdigest()

    @cached_property
    def cased(self) -> bool:
        """Whether capitals are kept."""
        return self.words("A") == ["A"]

    @cached_property
    def continues_word(self) -> NDArray[np.bool_]:
        """(V,) True for the pieces that continue a word, which whole-word masking takes together."""
        return np.array([piece.startswith(CONTINUES) for piece in self.pieces])

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
        """Cut many texts, in parallel and without offsets: what preparing a corpus needs."""
        return [each.ids for each in _encode(self._backend.encode_batch_fast, texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: pieces of a word joined, special pieces left in."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text

    def piece(self, number: int) -> str:
        """The piece with this id."""
        return self.pieces[number]

    def ids_of(self, pieces: Iterable[str]) -> list[int]:
        """The ids of pieces, spelled as in the vocabulary."""
        try:
            return [self._ids[piece] for piece in pieces]
        except KeyError as error:
            raise usage_error(f'the vocabulary has no piece "{error.args[0]}".') from error

    def words(self, text: str) -> list[str]:
        """``text`` after the rules and before pieces are looked up."""
        plain = self._backend.normalizer.normalize_str(text) if self._backend.normalizer is not None else text
        if self._backend.pre_tokenizer is None:
            return [plain]
        return [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(plain)]

    def add_tokens(self, words: Iterable[str]) -> WordPiece:
        """A tokenizer that also knows ``words``, each as one token, under new ids after the old ones.

        What the rules would cut (``C++``, ``[E1]``) is looked for in the text before they do.
        """
        fresh: dict[str, list[str]] = {}
        for word in words:
            parts = self.words(word)
            if not parts or any(letter.isspace() for letter in word):
                raise usage_error(f'cannot add "{word}" to the vocabulary: it is blank or has white space in it.')
            if "".join(parts) not in self._ids:
                fresh["".join(parts)] = parts
        description = self._description()
        description["model"]["vocab"].update({piece: self.vocab_size + new for new, piece in enumerate(fresh)})
        backend = Tokenizer.from_str(json.dumps(description))
        backend.add_tokens([AddedToken(piece, normalized=True) for piece, parts in fresh.items() if len(parts) > 1])
        return WordPiece(backend, self._specials)

    def _description(self) -> dict[str, Any]:
        """The content of ``tokenizer.json``."""
        description: dict[str, Any] = json.loads(self._backend.to_str())
        return description

    @cached_property
    def _backend_with_specials(self) -> Tokenizer:
        backend = Tokenizer.from_str(self._backend.to_str())
        backend.encode_special_tokens = False
        return backend


def train(
    texts: Iterable[str],
    *,
    vocab_size: int = 30_000,
    cased: bool = False,
    strip_accents: bool | None = None,
    unicode_form: UnicodeForm | None = None,
) -> WordPiece:
    """Learn a vocabulary of at most ``vocab_size`` pieces; a small corpus gives fewer, as ``vocab_size`` of it says.

    Accents are dropped when the case is, unless ``strip_accents`` says otherwise. ``unicode_form`` is the form of
    every piece; None is NFC where accents were dropped, which keeps Hangul syllables whole, and no change elsewhere.
    NFD with accents dropped is the original. ``texts`` are read once, and one is in memory at a time.
    """
    if vocab_size < _SMALLEST:
        raise usage_error(f"--vocab-size is {vocab_size}; it must be {_SMALLEST} or more.")
    strip = not cased if strip_accents is None else strip_accents
    form = "NFC" if strip and unicode_form is None else unicode_form
    rules = Rules(lowercase=not cased, strip_accents=strip, form=form)
    specials = Specials()
    pieces = learn_pieces(map(_mend, texts), assemble({}, rules, specials), size=vocab_size, first=specials)
    if len(pieces) == len(specials):
        raise data_error("there is no text to learn a vocabulary from: nothing but white space was read.")
    return WordPiece(assemble({piece: number for number, piece in enumerate(pieces)}, rules, specials))


def _encode(encode_batch: Callable[..., list[Encoding]], texts: Sequence[str]) -> list[Encoding]:
    """Run the library, and again on mended texts if it refuses: JSON can hold half a surrogate pair."""
    try:
        return encode_batch(list(texts), add_special_tokens=False)
    except TypeError:
        return encode_batch([_mend(text) for text in texts], add_special_tokens=False)


def _mend(text: str) -> str:
    return _SURROGATE.sub(_LETTER_OF_NO_VOCABULARY, text)


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
