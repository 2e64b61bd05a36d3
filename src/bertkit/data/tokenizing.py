"""Units of text to token arrays. Nothing here loads PyTorch, which would cost every worker 200 MB and seconds.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, pre_tokenizers

from bertkit.data.sources import TextChunk

_SMALL_IDS = 65536
_BREAK = "\0"


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Work for one worker: pieces with documents numbered through the whole corpus, ``keys`` beside them.

    ``done_bytes`` is how far in the input the unit ends.
    """

    pieces: tuple[TextChunk, ...]
    keys: tuple[int, ...]
    done_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedChunk:
    """``tokens`` (N,) of a piece of document ``number`` and the lengths (S,) of its sentences."""

    number: int
    key: int
    tokens: NDArray[Any]
    sentence_lengths: NDArray[np.int64]
    unknown: int


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """What a worker needs to know of a tokenizer: its ``tokenizer.json`` and the id of the unknown piece."""

    file: Path
    vocab_size: int
    unk_id: int

    @property
    def dtype(self) -> type[np.uint16 | np.uint32]:
        """The smallest type that holds every id."""
        return np.uint16 if self.vocab_size <= _SMALL_IDS else np.uint32


class UnitTokenizer:
    """Finds the sentences of units and cuts them into ids; special pieces typed in the text are plain text.

    The sentences of a piece are given to the library as one text with a break between them, of an id that no
    vocabulary has. Each given alone would be cut the same, and take 9 % longer. Where a space is a part of the word
    behind it, every sentence but the first of a piece has one before it, as it had in its text.
    """

    def __init__(self, rules: TokenizerFile) -> None:
        self.rules = rules
        self._backend = Tokenizer.from_file(str(rules.file))
        self._backend.encode_special_tokens = True
        self._backend.add_tokens([AddedToken(_BREAK, normalized=False)])
        self._break_id = self._backend.token_to_id(_BREAK)
        self._keeps_spaces = isinstance(self._backend.pre_tokenizer, pre_tokenizers.ByteLevel)

    def tokenize(self, unit: WorkUnit) -> list[TokenizedChunk]:
        """Every piece of a unit; sentences without a token are left out."""
        between = _BREAK + " " * self._keeps_spaces
        texts = [between.join(map(_plain, piece.sentences())) + _BREAK for piece in unit.pieces]
        encoded = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [
            self._take_apart(piece.number, key, np.array(encoding.ids, dtype=np.uint32))
            for piece, key, encoding in zip(unit.pieces, unit.keys, encoded, strict=True)
        ]

    def _take_apart(self, number: int, key: int, ids: NDArray[np.uint32]) -> TokenizedChunk:
        breaks = np.flatnonzero(ids == self._break_id)
        lengths = np.diff(breaks, prepend=-1) - 1
        return TokenizedChunk(
            number=number,
            key=key,
            tokens=np.delete(ids, breaks).astype(self.rules.dtype),
            sentence_lengths=lengths[lengths > 0],
            unknown=int(np.count_nonzero(ids == self.rules.unk_id)),
        )


def _plain(sentence: str) -> str:
    """BERT's rules drop the character NUL, which is the break, from any text."""
    return sentence.replace(_BREAK, "")
