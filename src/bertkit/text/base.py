"""What all tokenizers share: a vocabulary, the rules that split a text, and encoding and decoding with them.

Every kind runs on the ``tokenizers`` library. The kinds differ in how words become subwords, and in the names of their
special tokens.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from bertkit.batch import Token
from bertkit.contracts import Tokens
from bertkit.errors import data_error, usage_error
from bertkit.text.added_tokens import AddedTokens
from bertkit.text.tokenizer_files import Description, save_tokenizer

_SURROGATE = re.compile("[\ud800-\udfff]")
_IN_NO_VOCABULARY = "\uffff"


class BaseTokenizer:
    """A vocabulary and the rules that split a text into its subwords.

    ``special_tokens`` are the spellings of the tokens that no text becomes. ``added`` are those that the folder of the
    tokenizer adds, which are found in texts and never split. ``model`` and ``source`` are for errors: the model that
    the tokenizer is for, and the file that it came from. Raises a data error if a special token is missing or if the
    ids are not consecutive from 0.

    A row for a model is ``start_id``, a text, ``end_id``; ``between_ids`` separate the two texts of a pair.
    """

    cls_id: Token
    sep_id: Token
    start_id: Token
    between_ids: Sequence[Token]
    end_id: Token

    def __init__(
        self,
        backend: Tokenizer,
        special_tokens: Sequence[str],
        *,
        model: str,
        source: str,
        added: AddedTokens | None = None,
    ) -> None:
        self._backend = backend
        self._added = added or AddedTokens()
        backend.add_tokens(self._added.besides(special_tokens))
        # Despite its name, this makes the library treat "[MASK]" typed in a text as six characters.
        self._backend.encode_special_tokens = True
        ids: dict[str, int] = backend.get_vocab()
        missing = [token for token in special_tokens if token not in ids]
        if missing:
            raise data_error(f"{source} has no {', '.join(missing)}; {model} needs {', '.join(special_tokens)}.")
        if sorted(ids.values()) != list(range(len(ids))):
            raise data_error(f"{source} has {len(ids):,} tokens whose ids are not 0 to {len(ids) - 1:,}.")
        self._ids = ids
        self.special_tokens = tuple(special_tokens)
        self.vocabulary: list[str] = sorted(ids, key=lambda token: ids[token])
        self.vocab_size = len(ids)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rules and the vocabulary.

        Equal fingerprints mean the same ids for every text; rules that are spelled differently have different
        fingerprints.
        """
        return _fingerprint(self._describe(), self.special_tokens, self.vocab_size)

    @cached_property
    def cased(self) -> bool:
        """Whether upper case is kept."""
        return self.pre_tokenize("A") != self.pre_tokenize("a")

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """The tokens of one text. Offsets count characters of ``text`` as it was given, before normalization.

        Special tokens typed in the text are ordinary text, or with ``specials`` the special tokens. None are added.
        """
        backend = self._backend_with_specials if specials else self._backend
        (encoded,) = _encode(backend.encode_batch, [text])
        return Tokens(encoded.ids, _cover_marks(text, encoded.offsets))

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of many texts, encoded in parallel."""
        encoded = _encode(self._backend.encode_batch, texts)
        return [Tokens(each.ids, _cover_marks(text, each.offsets)) for text, each in zip(texts, encoded, strict=True)]

    def encode_ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, encoded in parallel and without offsets, which is faster."""
        return [each.ids for each in _encode(self._backend.encode_batch_fast, texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: the subwords of a word are joined, special tokens are kept."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text

    def id_to_token(self, id: int) -> str:
        """The subword with this id, as the vocabulary spells it."""
        return self.vocabulary[id]

    def tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of subwords, spelled as in the vocabulary."""
        try:
            return [self._ids[token] for token in tokens]
        except KeyError as error:
            raise usage_error(f'the vocabulary has no token "{error.args[0]}".') from error

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The characters of a subword without the markers of the vocabulary, and whether it continues a word."""
        return self.id_to_token(id), False

    @cached_property
    def continues_word(self) -> NDArray[np.bool_]:
        """(V,) True for the subwords that continue a word; whole-word masking masks them with its beginning."""
        return np.array([self.surface_form(id)[1] for id in range(self.vocab_size)])

    def pre_tokenize(self, text: str) -> list[str]:
        """The words of ``text``, normalized, before they are split into subwords."""
        plain = self._backend.normalizer.normalize_str(text) if self._backend.normalizer is not None else text
        if self._backend.pre_tokenizer is None:
            return [plain]
        return [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(plain)]

    def _describe(self) -> Description:
        """The content of ``tokenizer.json``."""
        description: Description = json.loads(self._backend.to_str())
        return description

    def _save(self, folder: Path | str, config: Mapping[str, object], files: Mapping[str, str]) -> None:
        """Write ``tokenizer.json``, ``files`` (name -> text) and ``tokenizer_config.json``, in which the settings that
        came with the tokenizer replace those of ``config``."""
        description = self._describe()
        for token in description["added_tokens"]:
            token["special"] = token["special"] or token["content"] in self._added.special
        save_tokenizer(folder, description, {**config, **self._added.settings}, files)

    @cached_property
    def _backend_with_specials(self) -> Tokenizer:
        backend = Tokenizer.from_str(self._backend.to_str())
        backend.encode_special_tokens = False
        return backend


def extends(larger: BaseTokenizer, base: BaseTokenizer) -> bool:
    """Whether ``larger`` is ``base`` with words added to it: the same rules, and more entries after its own."""
    first = _fingerprint(larger._describe(), larger.special_tokens, base.vocab_size)
    return larger.vocab_size > base.vocab_size and first == base.fingerprint


def _fingerprint(description: Description, special_tokens: Sequence[str], size: int) -> str:
    """SHA-256 of the rules and the first ``size`` entries of the vocabulary."""
    parts = {name: description.get(name) for name in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
    vocabulary = {token: id for token, id in description["model"]["vocab"].items() if id < size}
    parts["model"] = {**description["model"], "vocab": vocabulary}
    parts["added_tokens"] = [token for token in description["added_tokens"] if token["id"] < size]
    saved = json.dumps([parts, special_tokens], sort_keys=True)
    return hashlib.sha256(saved.encode()).hexdigest()


def replace_surrogates(text: str) -> str:
    """``text`` without lone surrogates, which JSON can hold and the library, whose strings are UTF-8, refuses."""
    return _SURROGATE.sub(_IN_NO_VOCABULARY, text)


def _encode(encode_batch: Callable[..., list[Encoding]], texts: Sequence[str]) -> list[Encoding]:
    """Run the library, and once more without lone surrogates if it refuses the texts.

    A usage error for one text in place of several, which would be a text per character, and for what is no text.
    """
    if isinstance(texts, str):
        raise usage_error("texts is one text, and must be a list of texts: put it in brackets, or use encode.")
    try:
        return encode_batch(list(texts), add_special_tokens=False)
    except TypeError as error:
        for text in texts:
            if not isinstance(text, str):
                raise usage_error(f"a text is of the type {type(text).__name__}; it must be str.") from error
        return encode_batch([replace_surrogates(text) for text in texts], add_special_tokens=False)


def _cover_marks(text: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Extend offsets over the combining marks and Jamo that follow a character.

    The library leaves them out where normalization drops or composes them; a span that ends before its accent would
    cut a letter of an answer in two.
    """
    if text.isascii():
        return offsets
    limits = [start for start, _ in [*offsets, (len(text), 0)][1:]]
    covered = []
    for (start, end), limit in zip(offsets, limits, strict=True):
        while end < limit and _is_mark(text[end]):
            end += 1
        covered.append((start, end))
    return covered


def _is_mark(character: str) -> bool:
    return "\u1160" <= character <= "\u11ff" or unicodedata.category(character) == "Mn"
