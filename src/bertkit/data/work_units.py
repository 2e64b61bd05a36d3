"""All files of a corpus as work units, in order, and the blocks of their results, numbered by document."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.data.blocks import block_characters
from bertkit.data.document_hash import DocumentHash, count_duplicates
from bertkit.data.parts import LinePart, Part, cut_lines_into_parts, group_documents
from bertkit.data.shards import SourceRecord
from bertkit.data.sources import LineForm, ReadLog, ReadOptions, find_line_form, read_chunks
from bertkit.data.tokenizing import TokenizedBlock
from bertkit.data.unit_worker import UnitResult, WorkUnit
from bertkit.formats.compression import ByteStream
from bertkit.storage.remote import RemotePath
from bertkit.storage.suffixes import COMPRESSIONS

_UNIT_BYTES = 1_000_000
"""A unit takes about 150 MB of memory while it is tokenized, and a third of a second of one core."""


@dataclass(slots=True)
class _Source:
    """A file that is being read, with its size in bytes and what was found so far.

    ``number`` is that of the last document in the file; ``documents`` counts those that were not dropped.
    ``ends_inside``: the last document may go on.
    """

    file: Path
    bytes: int
    log: ReadLog
    number: int = -1
    documents: int = 0
    replaced: int = 0
    ends_inside: bool = False


class UnitReader:
    """Divides ``files`` into units, to hold out a share of ``heldout``. The counts are complete after the last result.

    ``dropped`` has for every file the numbers of documents to skip; ``dropped_lines`` counts lines in the
    others. Keeps eight bytes per document in memory, to count duplicates.
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
        self.dropped_lines = 0
        self._finished_bytes = 0
        self._number = -1
        self._hashes = array("Q")
        self._open_hashes: list[int] = []

    @property
    def documents(self) -> int:
        """Documents so far that were not dropped, including empty ones."""
        return sum(source.documents for source in self.sources)

    def units(self) -> Iterator[WorkUnit]:
        """Units of about a million bytes. Each has many small documents or files, or a part of a large one."""
        held: list[tuple[int, Part]] = []
        size = 0
        for index, part in self._parts():
            # The size depends on the text alone, not on the number of workers, so that the same holds for the shards.
            if held and size + len(part) > _UNIT_BYTES:
                done = self._finished_bytes + self.sources[index].log.stream.position
                yield WorkUnit(tuple(held), self.block_characters, done)
                held, size = [], 0
            held.append((index, part))
            size += len(part)
        if held:
            yield WorkUnit(tuple(held), self.block_characters, self.total_bytes)

    def accept(self, unit: WorkUnit, result: UnitResult) -> list[tuple[int, TokenizedBlock]]:
        """The blocks of the next unit, each with the number of its document, without dropped documents."""
        blocks: list[tuple[int, TokenizedBlock]] = []
        for (index, _), part in zip(unit.parts, result, strict=True):
            source = self.sources[index]
            source.replaced += part.replaced
            goes_on = source.ends_inside and part.starts_inside
            for document in part.documents:
                number = self._count(source, self._dropped[index], document.text_hash, goes_on)
                goes_on = False
                if number is not None:
                    self.dropped_lines += document.dropped_lines
                    blocks += [(number, block) for block in document.blocks]
            source.ends_inside = part.ends_inside and bool(part.documents)
        return blocks

    def _count(self, source: _Source, dropped: frozenset[int], text_hash: int | None, goes_on: bool) -> int | None:
        """The number in the corpus of the next document of ``source``, or of its last one that goes on."""
        if not goes_on:
            self._close_document()
            source.number += 1
        if source.number in dropped:
            return None
        if not goes_on:
            self._number += 1
            source.documents += 1
        # Blank documents are skipped later and would all count as duplicates of the first.
        if text_hash is not None:
            self._open_hashes.append(text_hash)
        return self._number

    def _close_document(self) -> None:
        if self._open_hashes:
            self._hashes.append(DocumentHash.join(self._open_hashes))
            self._open_hashes = []

    def count_duplicates(self) -> int:
        """Documents with the same text as an earlier one, except for white space around it."""
        self._close_document()
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
                replaced_characters=source.replaced,
            )
            for source in self.sources
        )

    def _parts(self) -> Iterator[tuple[int, Part]]:
        for index, source in enumerate(self.sources):
            form = find_line_form(source.file, self.reading)
            if form is None:
                chunks = read_chunks(source.file, self.reading, source.log)
                yield from ((index, part) for part in group_documents(chunks, _UNIT_BYTES))
            else:
                source.log.boundary, source.log.sentence_lines = form.boundary, form.sentence_lines
                yield from ((index, part) for part in self._line_parts(source, form))
            self._finished_bytes += source.log.stream.position

    def _line_parts(self, source: _Source, form: LineForm) -> Iterator[LinePart]:
        # What had to be unpacked or downloaded here is sent to the workers.
        is_sent = source.file.suffix.lower() in COMPRESSIONS or isinstance(source.file, RemotePath)
        begin = 0
        for content in cut_lines_into_parts(source.log.stream, form.boundary, _UNIT_BYTES):
            yield LinePart(
                source.file, form, self.reading.on_bad_bytes, begin, len(content), content if is_sent else None
            )
            begin += len(content)
