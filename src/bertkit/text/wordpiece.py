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

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from tokenizers import AddedToken, Tokenizer

from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.storage.atomic import write_file, write_json
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.normalization import CONTINUATION_PREFIX, NormalizationRules, SpecialTokens, UnicodeForm, assemble
from bertkit.text.tokenizer_files import CONFIG, RULES, VOCABULARY, config_of, read_folder
from bertkit.text.training import train_wordpiece

_SMALLEST = 2 * len(SpecialTokens._fields)


class WordPiece(BaseTokenizer):
    """A vocabulary and the rules of cutting. Ids of special pieces are looked up by name in the vocabulary."""

    cls_id: int
    sep_id: int

    def __init__(
        self, backend: Tokenizer, specials: SpecialTokens | None = None, source: str = "the vocabulary"
    ) -> None:
        self._specials = specials or SpecialTokens()
        super().__init__(backend, self._specials, model="BERT", source=source)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.tokens_to_ids(self._specials)

    @classmethod
    def load(cls, path: Path | str) -> Self:
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
        pieces = "\n".join(self.vocabulary) + "\n"
        write_file(folder / RULES, lambda path: path.write_text(rules, encoding="utf-8", newline="\n"))
        write_file(folder / VOCABULARY, lambda path: path.write_text(pieces, encoding="utf-8", newline="\n"))
        flags = {
            "do_lower_case": not self.cased,
            "strip_accents": self.pre_tokenize("é") == ["e"],
            "tokenize_chinese_chars": len(self.pre_tokenize("中中")) == 2,
        }
        write_json(folder / CONFIG, config_of(self._specials, **flags))

    @classmethod
    def from_json(cls, saved: str) -> WordPiece:
        """The tokenizer that ``to_json`` wrote down."""
        parts = json.loads(saved)
        return cls(Tokenizer.from_str(json.dumps(parts["rules"])), SpecialTokens(*parts["specials"]))

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The letters of a piece without its ``##``, and whether it had them."""
        piece = self.id_to_token(id)
        return piece.removeprefix(CONTINUATION_PREFIX), piece.startswith(CONTINUATION_PREFIX)

    def add_tokens(self, words: Iterable[str]) -> WordPiece:
        """A tokenizer that also knows ``words``, each as one token, under new ids after the old ones.

        What the rules would cut (``C++``, ``[E1]``) is looked for in the text before they do.
        """
        fresh: dict[str, list[str]] = {}
        for word in words:
            parts = self.pre_tokenize(word)
            if not parts or any(letter.isspace() for letter in word):
                raise usage_error(f'cannot add "{word}" to the vocabulary: it is blank or has white space in it.')
            if "".join(parts) not in self._ids:
                fresh["".join(parts)] = parts
        description = self._description()
        description["model"]["vocab"].update({piece: self.vocab_size + new for new, piece in enumerate(fresh)})
        backend = Tokenizer.from_str(json.dumps(description))
        backend.add_tokens([AddedToken(piece, normalized=True) for piece, parts in fresh.items() if len(parts) > 1])
        return WordPiece(backend, self._specials)


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
    rules = NormalizationRules(lowercase=not cased, strip_accents=strip, form=form)
    specials = SpecialTokens()
    pieces = train_wordpiece(
        map(replace_surrogates, texts), assemble({}, rules, specials), size=vocab_size, first=specials
    )
    if len(pieces) == len(specials):
        raise data_error("there is no text to learn a vocabulary from: nothing but white space was read.")
    return WordPiece(assemble({piece: number for number, piece in enumerate(pieces)}, rules, specials))
