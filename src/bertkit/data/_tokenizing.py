"""Units of text to token arrays. Nothing here loads PyTorch, which would cost every worker 200 MB and seconds.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertkit.data.sources import Piece

_SMALL_IDS = 65536
_SENTENCES_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Unit:
    """Work for one worker: pieces with documents numbered through the whole corpus, ``keys`` beside them.

    ``done_bytes`` is how far in the input the unit ends.
    """

    pieces: tuple[Piece, ...]
    keys: tuple[int, ...]
    done_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPiece:
    """``tokens`` (N,) of a piece of document ``number`` and the lengths (S,) of its sentences."""

    number: int
    key: int
    tokens: NDArray[Any]
    sentence_lengths: NDArray[np.int64]
    unknown: int


@dataclass(frozen=True, slots=True)
class TokenizerRules:
    """What a worker needs to know of a tokenizer: its ``tokenizer.json`` and the id of the unknown piece."""

    file: Path
    vocab_size: int
    unk_id: int

    @property
    def dtype(self) -> type[np.uint16 | np.uint32]:
        """The smallest type that holds every id."""
        return np.uint16 if self.vocab_size <= _SMALL_IDS else np.uint32


class UnitTokenizer:
    """Finds the sentences of units and cuts them into ids; special pieces typed in the text are plain text."""

    def __init__(self, rules: TokenizerRules) -> None:
        self.rules = rules
        self._backend = Tokenizer.from_file(str(rules.file))
        self._backend.encode_special_tokens = True

    def tokenize(self, unit: Unit) -> list[TokenizedPiece]:
        """Every piece of a unit; sentences without a token are left out."""
        split = [piece.sentences() for piece in unit.pieces]
        encoded = self._encode(list(chain.from_iterable(split)))
        results = []
        for piece, key, sentences in zip(unit.pieces, unit.keys, split, strict=True):
            ids = [each for each in islice(encoded, len(sentences)) if each]
            tokens = np.fromiter(chain.from_iterable(ids), dtype=self.rules.dtype)
            lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
            unknown = int(np.count_nonzero(tokens == self.rules.unk_id))
            results.append(TokenizedPiece(piece.number, key, tokens, lengths, unknown))
        return results

    def _encode(self, sentences: list[str]) -> Iterator[list[int]]:
        """Ids a sentence, by batches: what the library makes of a text takes 150 times its space."""
        for start in range(0, len(sentences), _SENTENCES_AT_ONCE):
            batch = sentences[start : start + _SENTENCES_AT_ONCE]
            for encoding in self._backend.encode_batch_fast(batch, add_special_tokens=False):
                yield encoding.ids
