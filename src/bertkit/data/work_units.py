"""All files of a corpus as work units, in order; every document is numbered, hashed and counted while it is read."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from bertkit.data.blocks import block_characters
from bertkit.data.document_hash import DocumentHash, count_duplicates
from bertkit.data.shards import SourceRecord
from bertkit.data.sources import ReadLog, ReadOptions, TextChunk, read_chunks
from bertkit.data.tokenizing import WorkUnit
from bertkit.formats.compression import ByteStream

_UNIT_CHARACTERS = 400_000


@dataclass(slots=True)
class _Source:
    """A file that is being read, with its size in bytes and the documents so far."""

    file: Path
    bytes: int
    log: ReadLog
    documents: int = 0


class UnitReader:
    """Reads ``files`` once, to hold out a share of ``heldout``. The counts are complete when ``units`` has ended.

    ``dropped`` has for every file the numbers of documents to skip. Keeps eight bytes per document in memory, to count
    duplicates.
    """

    def __init__(
        self,
        files: Sequence[Path],
        reading: ReadOptions,
        *,
        heldout: float = 0.0,
        dropped: Sequence[frozenset[int]] | None = None,
    ) -> None:
        self.reading = reading
        self._dropped = dropped or [frozenset[int]()] * len(files)
        self.sources = [_Source(file, file.stat().st_size, ReadLog(ByteStream(file))) for file in files]
        self.total_bytes = sum(source.bytes for source in self.sources)
        self.block_characters = block_characters(self.total_bytes, heldout)
        self._hashes = array("Q")

    @property
    def documents(self) -> int:
        """Documents so far that were not dropped, including empty ones."""
        return sum(source.documents for source in self.sources)

    def units(self) -> Iterator[WorkUnit]:
        """Units of about 400,000 characters. A small document is in one unit; a large one is several chunks."""
        held: list[TextChunk] = []
        size = 0
        for chunk in self._chunks():
            # The size depends on the text alone, not on the number of workers, so that the same holds for the shards.
            if held and size + len(chunk.text) > _UNIT_CHARACTERS:
                yield WorkUnit(tuple(held), self.block_characters, self._done_bytes())
                held, size = [], 0
            held.append(chunk)
            size += len(chunk.text)
        if held:
            yield WorkUnit(tuple(held), self.block_characters, self.total_bytes)

    def count_duplicates(self) -> int:
        """Documents with the same text as an earlier one, except for white space around it."""
        return sum(count_duplicates([self._hashes]))

    def records(self, hashes: Mapping[str, str]) -> tuple[SourceRecord, ...]:
        """The files for the manifest; ``hashes`` has the SHA-256 of each by name."""
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

    def _chunks(self) -> Iterator[TextChunk]:
        """Chunks with the number of their document in the whole corpus."""
        number = -1
        for source, dropped in zip(self.sources, self._dropped, strict=True):
            chunks = read_chunks(source.file, self.reading, source.log)
            for number_in_file, document in groupby(chunks, key=attrgetter("number")):
                if number_in_file in dropped:
                    continue
                number += 1
                source.documents += 1
                text_hash = DocumentHash()
                for chunk in document:
                    text_hash.add(chunk.text)
                    yield replace(chunk, number=number)
                # Blank documents are skipped later and would all count as duplicates of the first.
                if not text_hash.is_blank:
                    self._hashes.append(text_hash.value)

    def _done_bytes(self) -> int:
        return sum(source.log.stream.position for source in self.sources)
