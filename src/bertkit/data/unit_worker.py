"""What a worker does with a work unit: it reads the text, hashes the documents, finds sentences and tokenizes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from bertkit.data.document_hash import DocumentHash
from bertkit.data.parts import Part
from bertkit.data.repeated_lines import without_lines
from bertkit.data.sources import TextChunk, by_document
from bertkit.data.tokenizing import ChunkTokenizer, TokenizedBlock, TokenizerFile


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Work for one worker: parts of files, each with the index of its file.

    Chunks are divided into blocks of about ``block_characters``. ``done_bytes`` is the position in the input where the
    unit ends. Of a unit that is not ``tokenized`` the documents are counted and hashed only.
    """

    parts: tuple[tuple[int, Part], ...]
    block_characters: int
    done_bytes: int
    tokenized: bool = True


@dataclass(frozen=True, slots=True)
class TokenizedDocument:
    """The hash of a document, or None if it is blank; how many of its lines were dropped; and its blocks."""

    text_hash: int | None
    dropped_lines: int
    blocks: list[TokenizedBlock]


@dataclass(frozen=True, slots=True)
class TokenizedPart:
    """The documents of a part, of which the first and the last may be incomplete; the rest is as in ``PartText``."""

    documents: list[TokenizedDocument]
    starts_inside: bool
    ends_inside: bool
    replaced: int


UnitResult = list[TokenizedPart]
"""Every part of a unit, in order."""


class UnitWorker:
    """Makes the results of units; the tokenizer is loaded at the first call, in the process of that call.

    ``dropped_lines`` are the hashes of the lines that are left out.
    """

    def __init__(self, tokenizer_file: TokenizerFile, dropped_lines: frozenset[int] = frozenset()) -> None:
        self._tokenizer_file = tokenizer_file
        self._dropped_lines = dropped_lines

    @cached_property
    def _tokenizer(self) -> ChunkTokenizer:
        return ChunkTokenizer(self._tokenizer_file)

    def __call__(self, unit: WorkUnit) -> UnitResult:
        """Read and tokenize a unit."""
        parts: UnitResult = []
        chunks: list[tuple[TextChunk, TokenizedDocument]] = []
        for _, part in unit.parts:
            text = part.read()
            documents: list[TokenizedDocument] = []
            for _, document in by_document(text.chunks):
                kept, dropped_lines = self._drop_lines(document)
                documents.append(TokenizedDocument(_hash_document(kept), dropped_lines, []))
                chunks += [(chunk, documents[-1]) for chunk in kept]
            parts.append(TokenizedPart(documents, text.starts_inside, text.ends_inside, text.replaced))
        if unit.tokenized:
            # All chunks together: the library splits many small ones as fast as a large one.
            tokenized = self._tokenizer.tokenize([chunk for chunk, _ in chunks], unit.block_characters)
            for (_, owner), blocks in zip(chunks, tokenized, strict=True):
                owner.blocks.extend(blocks)
        return parts

    def _drop_lines(self, document: Iterable[TextChunk]) -> tuple[list[TextChunk], int]:
        """The chunks of a document without the lines that are left out, and how many these are."""
        kept, total = [], 0
        for chunk in document:
            text, count = without_lines(chunk.text, self._dropped_lines)
            kept.append(replace(chunk, text=text) if count else chunk)
            total += count
        return kept, total


def _hash_document(chunks: Iterable[TextChunk]) -> int | None:
    text_hash = DocumentHash()
    for chunk in chunks:
        text_hash.add(chunk.text)
    return None if text_hash.is_blank else text_hash.value
