"""WordPiece, BERT's tokenizer, on the ``tokenizers`` library: loading, training, use.

The order of things is that of google-research/bert ``tokenization.py``: drop control characters, put spaces
around Chinese characters, split at white space, lower the case, drop accents, split at punctuation, then take
the longest known piece again and again. Three facts that surprise:

* Dropping accents decomposes (NFD), which tears Hangul into Jamo. The published uncased vocabularies were made
  that way and are read that way; a vocabulary trained here composes again (NFC) unless told otherwise.
* A cased tokenizer does not normalise at all: a letter and the same letter with a combining mark differ.
* ``[MASK]`` in a text is six characters of text, here as in the original; ``specials=True`` makes it the piece.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from bertkit.contracts import Tokens
from bertkit.errors import data_error, usage_error
from bertkit.storage import read_json, write_file, write_json

SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UnicodeForm = Literal["NFC", "NFD"]

_CONTINUES = "##"
_LONGEST_WORD = 100
_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")


class WordPiece:
    """A vocabulary and the rules of cutting. Ids of special pieces are looked up by name in the vocabulary."""

    def __init__(self, backend: Tokenizer, *, cased: bool, source: str = "the vocabulary") -> None:
        self._plain = backend
        self._plain.encode_special_tokens = True
        self._special = Tokenizer.from_str(backend.to_str())
        self._special.encode_special_tokens = False
        self.cased = cased
        self.vocab_size: int = backend.get_vocab_size()
        pieces: dict[str, int] = backend.get_vocab()
        missing = [piece for piece in SPECIAL_PIECES if piece not in pieces]
        if missing:
            raise data_error(
                f"{source} has no {', '.join(missing)}; a BERT vocabulary needs {', '.join(SPECIAL_PIECES)}."
            )
        if sorted(pieces.values()) != list(range(self.vocab_size)):
            raise data_error(f"{source} has {len(pieces):,} pieces whose ids are not 0 to {len(pieces) - 1:,}.")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (pieces[name] for name in SPECIAL_PIECES)
        self.pieces: list[str] = sorted(pieces, key=lambda piece: pieces[piece])
        self.continues_word: NDArray[np.bool_] = np.array([piece.startswith(_CONTINUES) for piece in self.pieces])

    @classmethod
    def load(cls, path: Path | str) -> WordPiece:
        """Read a ``vocab.txt``, or a folder with that or ``tokenizer.json``, and with ``tokenizer_config.json``."""
        path = Path(path)
        folder = path if path.is_dir() else path.parent
        config_file = folder / "tokenizer_config.json"
        config: dict[str, Any] = read_json(config_file) if config_file.is_file() else {}
        if path.is_dir() and (path / "tokenizer.json").is_file():
            return cls._from_tokenizer_json(path / "tokenizer.json", config)
        vocabulary = path / "vocab.txt" if path.is_dir() else path
        if not vocabulary.is_file():
            raise data_error(f"{path} has no tokenizer: neither tokenizer.json nor vocab.txt is there.")
        return cls._from_vocabulary(vocabulary, config)

    @classmethod
    def _from_tokenizer_json(cls, path: Path, config: dict[str, Any]) -> WordPiece:
        description = read_json(path)
        kind = description.get("model", {}).get("type") if isinstance(description, dict) else None
        if kind not in (None, "WordPiece"):
            raise data_error(f"{path} is a {kind} tokenizer; WordPiece is what BERT uses.")
        try:
            backend = Tokenizer.from_str(json.dumps(description))
        except Exception as error:  # the library raises nothing narrower
            raise data_error(f"{path} is not a tokenizer: {error}.") from error
        backend.no_padding()
        backend.no_truncation()
        normalizer = json.dumps(description.get("normalizer"))
        cased = not config.get("do_lower_case", '"lowercase": true' in normalizer)
        return cls(backend, cased=cased, source=str(path))

    @classmethod
    def _from_vocabulary(cls, path: Path, config: dict[str, Any]) -> WordPiece:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise data_error(f"{path} cannot be read as UTF-8 text: {error}.") from error
        if lines[-1] == "":
            lines.pop()
        vocabulary: dict[str, int] = {}
        for number, line in enumerate(lines):
            piece = line.removesuffix("\r")
            if piece in vocabulary:
                raise data_error(
                    f'{path}, line {number + 1:,}: "{piece}" stands in line {vocabulary[piece] + 1:,} already.'
                )
            vocabulary[piece] = number
        cased = not config.get("do_lower_case", True) if config else _looks_cased(vocabulary)
        backend = _assemble(
            vocabulary,
            _original_normalizer(
                cased=cased,
                strip_accents=config.get("strip_accents"),
                chinese=config.get("tokenize_chinese_chars", True),
            ),
            longest_word=int(config.get("max_input_chars_per_word", _LONGEST_WORD)),
        )
        return cls(backend, cased=cased, source=str(path))

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json`` and ``vocab.txt``, for Hugging Face's loaders too."""
        folder.mkdir(parents=True, exist_ok=True)
        saved = json.loads(self._special.to_str())
        write_file(
            folder / "tokenizer.json",
            lambda path: path.write_text(json.dumps(saved, indent=1, ensure_ascii=False), encoding="utf-8"),
        )
        write_file(folder / "vocab.txt", lambda path: path.write_text("\n".join(self.pieces) + "\n", encoding="utf-8"))
        names = dict(
            zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_PIECES, strict=True)
        )
        # Their BertTokenizer rebuilds the rules from flags that cannot say "compose again"; the generic class takes
        # tokenizer.json as it is.
        kind = "PreTrainedTokenizerFast" if self._composes() else "BertTokenizer"
        rules = {"do_lower_case": not self.cased, "model_max_length": 512, "tokenizer_class": kind}
        write_json(folder / "tokenizer_config.json", {**rules, **names})

    def _composes(self) -> bool:
        return '"NFC"' in json.dumps(json.loads(self._plain.to_str())["normalizer"])

    def to_json(self) -> str:
        """Rules and vocabulary as the content of ``tokenizer.json``."""
        description: str = self._special.to_str()
        return description

    @classmethod
    def from_json(cls, description: str) -> WordPiece:
        """The tokenizer that ``to_json`` described."""
        return cls(Tokenizer.from_str(description), cased='"lowercase":true' not in description.replace(" ", ""))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the rules and the vocabulary."""
        saved = json.loads(self._special.to_str())
        return hashlib.sha256(json.dumps(saved, sort_keys=True).encode()).hexdigest()

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """Cut one text. Offsets are characters of ``text`` itself, whatever normalisation did to it."""
        encoded = (self._special if specials else self._plain).encode(text, add_special_tokens=False)
        return Tokens(encoded.ids, encoded.offsets)

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut many texts, in parallel."""
        encoded = self._plain.encode_batch(list(texts), add_special_tokens=False)
        return [Tokens(each.ids, each.offsets) for each in encoded]

    def encode_ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts, in parallel and without offsets: what preparing a corpus needs."""
        return [each.ids for each in self._plain.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: pieces of a word joined, special pieces left in."""
        text: str = self._special.decode(list(ids), skip_special_tokens=False)
        return text

    def piece(self, number: int) -> str:
        """The piece with this id."""
        return self.pieces[number]

    def add_tokens(self, words: Sequence[str]) -> WordPiece:
        """A tokenizer that knows ``words`` as whole words too, under new ids after the old ones."""
        known = set(self.pieces)
        fresh = [word for word in dict.fromkeys(words) if word not in known]
        for word in fresh:
            if len(self.encode(word).ids) == 0 or any(letter.isspace() for letter in word):
                raise usage_error(f'cannot add "{word}" to the vocabulary: it is blank or has a space in it.')
        description = json.loads(self._special.to_str())
        vocabulary: dict[str, int] = description["model"]["vocab"]
        for word in fresh:
            vocabulary[self._normalized(word)] = len(vocabulary)
        return WordPiece(Tokenizer.from_str(json.dumps(description)), cased=self.cased)

    def _normalized(self, word: str) -> str:
        normalizer = self._plain.normalizer
        text: str = normalizer.normalize_str(word) if normalizer is not None else word
        return text.strip()


def train(
    texts: Iterable[str],
    *,
    vocab_size: int = 30000,
    cased: bool = False,
    strip_accents: bool | None = None,
    unicode_form: UnicodeForm = "NFC",
) -> WordPiece:
    """Learn a vocabulary of at most ``vocab_size`` pieces; a small corpus gives fewer.

    Accents are dropped when the case is, unless ``strip_accents`` says otherwise. ``unicode_form`` is what
    dropping accents leaves behind: NFC keeps Hangul syllables whole, NFD is the original's.
    """
    if vocab_size <= len(SPECIAL_PIECES):
        raise usage_error(f"--vocab-size is {vocab_size}; the {len(SPECIAL_PIECES)} special pieces need room and more.")
    strip = not cased if strip_accents is None else strip_accents
    if strip and unicode_form == "NFC":
        normalizer = _composing_normalizer(cased=cased)
    else:
        normalizer = _original_normalizer(cased=cased, strip_accents=strip, chinese=True)
    backend = _assemble({piece: number for number, piece in enumerate(SPECIAL_PIECES)}, normalizer, _LONGEST_WORD)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_PIECES),
        continuing_subword_prefix=_CONTINUES,
        show_progress=False,
        min_frequency=2,
    )
    backend.train_from_iterator(iter(texts), trainer)
    trained = WordPiece(backend, cased=cased, source="the trained vocabulary")
    if trained.vocab_size == len(SPECIAL_PIECES):
        raise data_error("there is no text to learn a vocabulary from: nothing but white space was read.")
    return trained


def _assemble(vocabulary: dict[str, int], normalizer: Any, longest_word: int) -> Tokenizer:
    model = models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=longest_word)
    backend = Tokenizer(model)
    backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix=_CONTINUES, cleanup=True)
    known = [AddedToken(piece, special=True, normalized=False) for piece in SPECIAL_PIECES if piece in vocabulary]
    backend.add_special_tokens(known)
    return backend


def _original_normalizer(*, cased: bool, strip_accents: bool | None, chinese: bool) -> Any:
    strip = not cased if strip_accents is None else strip_accents
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip, lowercase=not cased
    )


def _composing_normalizer(*, cased: bool) -> Any:
    plain = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=not cased
    )
    return normalizers.Sequence([plain, normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC()])


def _looks_cased(vocabulary: Iterable[str]) -> bool:
    """A bare ``vocab.txt`` does not say; a cased one has words with capitals."""
    return any(piece != piece.lower() for piece in vocabulary if piece not in SPECIAL_PIECES and piece[:1] != "[")
