"""All files of a corpus as units of work in order, with every document numbered, hashed and counted on the way."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from bertkit.data.document_hash import DocumentHash, count_duplicates
from bertkit.data.shards import SourceRecord
from bertkit.data.sources import ReadLog, ReadOptions, TextChunk, read_chunks
from bertkit.data.tokenizing import WorkUnit
from bertkit.formats.compression import ByteStream

_UNIT_CHARACTERS = 400_000


@dataclass(slots=True)
class _Source:
    file: Path
    bytes: int
    log: ReadLog
    documents: int = 0


class UnitReader:
    """Reads ``files`` once. What it counted is complete when ``units`` has ended.

    Eight bytes a document are kept until then, to count duplicates.
    """

    def __init__(self, files: Sequence[Path], reading: ReadOptions) -> None:
        self.reading = reading
        self.sources = [_Source(file, file.stat().st_size, ReadLog(ByteStream(file))) for file in files]
        self.total_bytes = sum(source.bytes for source in self.sources)
        self._hashes = array("Q")

    @property
    def documents(self) -> int:
        """Documents so far, empty ones too."""
        return sum(source.documents for source in self.sources)

    def units(self) -> Iterator[WorkUnit]:
        """About 400,000 characters each. A small document is never cut, a large one is several pieces."""
        held: list[TextChunk] = []
        keys: list[int] = []
        size = 0
        for piece, key in self._pieces():
            if held and size + len(piece.text) > _UNIT_CHARACTERS:
                yield WorkUnit(tuple(held), tuple(keys), self._done_bytes())
                held, keys, size = [], [], 0
            held.append(piece)
            keys.append(key)
            size += len(piece.text)
        if held:
            yield WorkUnit(tuple(held), tuple(keys), self.total_bytes)

    def count_duplicates(self) -> int:
        """Documents whose text, but for white space around it, is that of an earlier one."""
        return sum(count_duplicates([self._hashes]))

    def records(self, hashes: Mapping[str, str]) -> tuple[SourceRecord, ...]:
        """What the manifest says of each file; ``hashes`` are the SHA-256 by name."""
        return tuple(
            SourceRecord(
                file=str(source.file),
                bytes=source.bytes,
                sha256=hashes[str(source.file)],
                boundary=source.log.boundary,
                sentence_lines=source.log.sentence_lines,
                documents=source.documents,
                replaced_characters=source.log.decoding.replaced,
            )
            for source in self.sources
        )

    def _pieces(self) -> Iterator[tuple[TextChunk, int]]:
        """Pieces with the number of their document in the whole corpus, and its key: the hash of its first piece."""
        number = -1
        for source in self.sources:
            pieces = read_chunks(source.file, self.reading, source.log)
            for _, document in groupby(pieces, key=attrgetter("number")):
                number += 1
                source.documents += 1
                text_hash = DocumentHash()
                for piece in document:
                    text_hash.add(piece.text)
                    assert text_hash.first is not None
                    yield replace(piece, number=number), text_hash.first
                if not text_hash.is_blank:
                    self._hashes.append(text_hash.value)

    def _done_bytes(self) -> int:
        return sum(source.log.stream.position for source in self.sources)
