"""Work units to token arrays. Nothing here imports PyTorch, which would cost every worker 200 MB and seconds.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, pre_tokenizers

from bertkit.data.sources import TextChunk

_SMALL_IDS = 65536
_BREAK = "\0"


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Work for one worker: chunks of documents, which are numbered through the whole corpus, and their ``keys``.

    ``done_bytes`` is the position in the input where the unit ends.
    """

    chunks: tuple[TextChunk, ...]
    keys: tuple[int, ...]
    done_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedChunk:
    """The ``tokens`` (N,) of a chunk of document ``number``, and the lengths (S,) of its sentences.

    ``key`` identifies the document; ``unknown`` counts its unknown tokens.
    """

    number: int
    key: int
    tokens: NDArray[np.unsignedinteger]
    sentence_lengths: NDArray[np.int64]
    unknown: int


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """What a worker needs of a tokenizer: its ``tokenizer.json``, and the id of the unknown token."""

    file: Path
    vocab_size: int
    unk_id: int

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The smallest type that holds every id."""
        return np.uint16 if self.vocab_size <= _SMALL_IDS else np.uint32


class UnitTokenizer:
    """Finds the sentences of work units and encodes them; special tokens typed in the text are ordinary text.

    The sentences of a chunk are given to the library as one text, separated by a token that no vocabulary has. Each
    sentence alone would give the same ids and take 9 % longer. In byte-level BPE a space belongs to the word after it;
    there every sentence of a chunk but the first has a space before it, as in its text.
    """

    def __init__(self, tokenizer: TokenizerFile) -> None:
        self.tokenizer = tokenizer
        self._backend = Tokenizer.from_file(str(tokenizer.file))
        # "[MASK]" in a text becomes ordinary tokens; only training puts masks into a row.
        self._backend.encode_special_tokens = True
        self._backend.add_tokens([AddedToken(_BREAK, normalized=False)])
        self._break_id = self._backend.token_to_id(_BREAK)
        self._keeps_spaces = isinstance(self._backend.pre_tokenizer, pre_tokenizers.ByteLevel)

    def tokenize(self, unit: WorkUnit) -> list[TokenizedChunk]:
        """The tokens of every chunk; sentences without a token are left out."""
        between = _BREAK + " " * self._keeps_spaces
        texts = [between.join(map(_without_break, chunk.sentences())) + _BREAK for chunk in unit.chunks]
        # Without offsets, which shards do not store.
        encoded = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [
            self._split_sentences(chunk.number, key, np.array(encoding.ids, dtype=np.uint32))
            for chunk, key, encoding in zip(unit.chunks, unit.keys, encoded, strict=True)
        ]

    def _split_sentences(self, number: int, key: int, ids: NDArray[np.uint32]) -> TokenizedChunk:
        breaks = np.flatnonzero(ids == self._break_id)
        lengths = np.diff(breaks, prepend=-1) - 1
        return TokenizedChunk(
            number=number,
            key=key,
            tokens=np.delete(ids, breaks).astype(self.tokenizer.dtype),
            sentence_lengths=lengths[lengths > 0],
            unknown=int(np.count_nonzero(ids == self.tokenizer.unk_id)),
        )


def _without_break(sentence: str) -> str:
    """The sentence without the character NUL, which separates sentences here; BERT's rules drop it from any text."""
    return sentence.replace(_BREAK, "")
