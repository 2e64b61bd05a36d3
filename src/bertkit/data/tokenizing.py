"""Chunks of text to token arrays. Nothing here imports PyTorch, which would cost every worker 200 MB and seconds.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, pre_tokenizers

from bertkit.data.blocks import Block, cut_blocks
from bertkit.data.sources import TextChunk

_SMALL_IDS = 65536
_BREAK = "\0"

_BATCH_CHARACTERS = 1_000_000
"""The library needs some 150 bytes per character of a batch, so this is 150 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedBlock:
    """The ``tokens`` (N,) of a block of document ``number``, and the lengths (S,) of its sentences.

    ``key`` is the hash of its text; ``unknown`` counts its unknown tokens.
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


class ChunkTokenizer:
    """Finds the sentences of chunks and encodes them; special tokens typed in the text are ordinary text.

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

    def tokenize(self, chunks: Sequence[TextChunk], block_characters: int) -> list[TokenizedBlock]:
        """The tokens of every block of about ``block_characters`` that has any; sentences without one are left out."""
        return [
            block
            for batch in _batches(chunks)
            for block in self._tokenize_batch(batch, block_characters)
            if len(block.tokens)
        ]

    def _tokenize_batch(self, chunks: Sequence[TextChunk], block_characters: int) -> Iterator[TokenizedBlock]:
        between = _BREAK + " " * self._keeps_spaces
        sentences = [chunk.sentences() for chunk in chunks]
        texts = [between.join(map(_without_break, each)) + _BREAK for each in sentences]
        # Without offsets, which shards do not store.
        encoded = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        for chunk, each, encoding in zip(chunks, sentences, encoded, strict=True):
            yield from self._split(chunk.number, cut_blocks(each, block_characters), encoding.ids)

    def _split(self, number: int, blocks: list[Block], ids: list[int]) -> Iterator[TokenizedBlock]:
        """The blocks of one chunk, whose ``ids`` have a break after every sentence."""
        tokens = np.array(ids, dtype=np.uint32)
        breaks = np.flatnonzero(tokens == self._break_id)
        lengths = np.diff(breaks, prepend=-1) - 1
        ends = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.delete(tokens, breaks).astype(self.tokenizer.dtype)
        for block in blocks:
            part, sizes = tokens[ends[block.begin] : ends[block.end]], lengths[block.begin : block.end]
            yield TokenizedBlock(
                number=number,
                key=block.key,
                tokens=part,
                sentence_lengths=sizes[sizes > 0],
                unknown=int(np.count_nonzero(part == self.tokenizer.unk_id)),
            )


def _batches(chunks: Sequence[TextChunk]) -> Iterator[Sequence[TextChunk]]:
    """Consecutive chunks of up to ``_BATCH_CHARACTERS``: a record of 100 MB is one part of its file."""
    ends = np.cumsum([len(chunk.text) for chunk in chunks])
    start = 0
    while start < len(chunks):
        limit = (ends[start - 1] if start else 0) + _BATCH_CHARACTERS
        end = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
        yield chunks[start:end]
        start = end


def _without_break(sentence: str) -> str:
    """The sentence without the character NUL, which separates sentences here; BERT's rules drop it from any text."""
    return sentence.replace(_BREAK, "")
