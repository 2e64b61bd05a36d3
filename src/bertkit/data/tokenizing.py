"""Chunks of text to token arrays. Nothing here imports PyTorch, which would cost every worker 200 MB and seconds.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, pre_tokenizers

from bertkit.data.blocks import Block, cut_blocks
from bertkit.data.sources import TextChunk
from bertkit.text.added_tokens import unmark_added
from bertkit.text.word_cache import BREAK, TextEncoder

_SMALL_IDS = 65536

_BATCH_CHARACTERS = 1_000_000
"""The library needs some 150 bytes per character of a batch, so this is 150 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedBlock:
    """The ``tokens`` (N,) of a block, and the lengths (S,) of its sentences.

    ``key`` is the hash of its text; ``unknown`` counts its unknown tokens.
    """

    key: int
    tokens: NDArray[np.unsignedinteger]
    sentence_lengths: NDArray[np.int64]
    unknown: int


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """What a worker needs of a tokenizer: its ``tokenizer.json``, and the model's own special tokens."""

    file: Path
    vocab_size: int
    unk_id: int
    special_tokens: tuple[str, ...]

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The smallest type that holds every id."""
        return np.uint16 if self.vocab_size <= _SMALL_IDS else np.uint32

    def load(self) -> Tokenizer:
        """The tokenizer of the library, with the special tokens that bertkit's has: a file may mark more of them."""
        description = json.loads(self.file.read_text(encoding="utf-8"))
        description["added_tokens"] = unmark_added(description["added_tokens"], self.special_tokens)
        return Tokenizer.from_str(json.dumps(description))


class ChunkTokenizer:
    """Finds the sentences of chunks and encodes them; special tokens typed in the text are ordinary text.

    The sentences of a chunk are given to the library as one text, separated by a token that no vocabulary has. Each
    sentence alone would give the same ids and take 9 % longer. In byte-level BPE a space belongs to the word after it;
    there every sentence of a chunk but the first has a space before it, as in its text.

    The token is the character NUL, which BERT's rules drop from a text. Where a tokenizer keeps it, sentences are given
    to the library one by one if any of them has it.
    """

    def __init__(self, tokenizer: TokenizerFile) -> None:
        self.tokenizer = tokenizer
        backend = tokenizer.load()
        self._between_sentences = " " * isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel)
        self._drops_nul = backend.normalizer is not None and not backend.normalizer.normalize_str(BREAK)
        self._encoder = TextEncoder(backend)

    def tokenize(self, chunks: Sequence[TextChunk], block_characters: int) -> Iterator[list[TokenizedBlock]]:
        """For each chunk its blocks of about ``block_characters`` that have a token; sentences without one are left
        out."""
        for batch in _batches(chunks):
            sentences = [chunk.sentences() for chunk in batch]
            for each, ids in zip(sentences, self._encode(sentences), strict=True):
                yield list(self._split(cut_blocks(each, block_characters), ids))

    def _encode(self, chunks: Sequence[Sequence[str]]) -> list[NDArray[np.uint32]]:
        """The ids of the sentences of each chunk, with a break after every sentence."""
        if not self._drops_nul and any(BREAK in sentence for each in chunks for sentence in each):
            return [self._encode_one_by_one(each) for each in chunks]
        between = BREAK + self._between_sentences
        return self._encoder.encode(
            [between.join(sentence.replace(BREAK, "") for sentence in each) + BREAK for each in chunks]
        )

    def _encode_one_by_one(self, sentences: Sequence[str]) -> NDArray[np.uint32]:
        texts = [self._between_sentences * (number > 0) + sentence for number, sentence in enumerate(sentences)]
        encoded = self._without_break.encode_batch_fast(texts, add_special_tokens=False)
        return np.array([id for each in encoded for id in (*each.ids, self._encoder.break_id)], dtype=np.uint32)

    @cached_property
    def _without_break(self) -> Tokenizer:
        """The tokenizer without the token between sentences."""
        backend = self.tokenizer.load()
        backend.encode_special_tokens = True
        return backend

    def _split(self, blocks: list[Block], tokens: NDArray[np.uint32]) -> Iterator[TokenizedBlock]:
        """The blocks of one chunk, whose ``tokens`` have a break after every sentence."""
        breaks = np.flatnonzero(tokens == self._encoder.break_id)
        lengths = np.diff(breaks, prepend=-1) - 1
        ends = np.concatenate([[0], np.cumsum(lengths)])
        words = np.delete(tokens, breaks).astype(self.tokenizer.dtype)
        for block in blocks:
            part, sizes = words[ends[block.begin] : ends[block.end]], lengths[block.begin : block.end]
            if len(part):
                unknown = int(np.count_nonzero(part == self.tokenizer.unk_id))
                yield TokenizedBlock(key=block.key, tokens=part, sentence_lengths=sizes[sizes > 0], unknown=unknown)


def _batches(chunks: Sequence[TextChunk]) -> Iterator[Sequence[TextChunk]]:
    """Consecutive chunks of up to ``_BATCH_CHARACTERS``: a record of 100 MB is one part of its file."""
    ends = np.cumsum([len(chunk.text) for chunk in chunks])
    start = 0
    while start < len(chunks):
        limit = (ends[start - 1] if start else 0) + _BATCH_CHARACTERS
        end = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
        yield chunks[start:end]
        start = end
