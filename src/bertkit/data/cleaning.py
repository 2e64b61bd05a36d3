"""What is left out of a corpus: repeated documents and lines, and documents that share text with evaluation files.

It is found in a pass over the files before the preparation, which then skips it: whether a document is left out
may depend on its end, and a document can be longer than the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertkit.data.document_hash import DocumentHash
from bertkit.data.near_duplicates import NearDuplicates
from bertkit.data.overlap import EvaluationTexts
from bertkit.data.repeated_lines import RepeatedLines
from bertkit.data.sources import ReadLog, ReadOptions, by_document, read_chunks
from bertkit.formats.compression import ByteStream
from bertkit.storage.checksums import sha256_of

Duplicates = Literal["exact", "near"]


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """What is left out: ``duplicates`` of earlier documents, documents with text of the files ``overlap``, and lines
    that are in ``repeated_lines`` documents or more."""

    duplicates: Duplicates | None = None
    overlap: tuple[Path, ...] = ()
    repeated_lines: int | None = None

    @property
    def passes(self) -> int:
        """How often the text is read: once more to choose what is left out, if anything is."""
        return 1 if self == Cleaning() else 2

    def describe(self) -> Mapping[str, object]:
        """Everything that the choice depends on; empty if nothing is left out."""
        chosen: dict[str, object] = {}
        if self.duplicates is not None:
            chosen["drop_duplicates"] = self.duplicates
        if self.overlap:
            chosen["drop_overlap"] = [[str(file), sha256_of(file)] for file in self.overlap]
        if self.repeated_lines is not None:
            chosen["drop_repeated_lines"] = self.repeated_lines
        return chosen


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """For every file the numbers of the documents that are left out, and how many for each reason.

    ``lines`` are the hashes of the lines that are left out of all others.
    """

    numbers: tuple[frozenset[int], ...] = ()
    duplicates: int = 0
    overlapping: int = 0
    lines: frozenset[int] = frozenset()


def find_dropped(
    files: Sequence[Path], reading: ReadOptions, cleaning: Cleaning, report: Callable[[int], None] = lambda done: None
) -> Dropped:
    """Read ``files`` and choose what to leave out.

    A document is compared with the earlier ones that are kept, and only the lines of kept documents are counted.
    ``report`` is called with the bytes of input that were read.
    """
    if cleaning.passes == 1:
        return Dropped(numbers=tuple(frozenset[int]() for _ in files))
    texts, repetitions = EvaluationTexts(cleaning.overlap), DuplicateDocuments(cleaning.duplicates)
    lines = RepeatedLines(cleaning.repeated_lines)
    duplicates = overlapping = 0
    numbers: list[frozenset[int]] = []
    read_bytes = 0
    for file in files:
        dropped: set[int] = set()
        log = ReadLog(ByteStream(file))
        for number, document in by_document(read_chunks(file, reading, log)):
            overlaps = False
            texts.start_document()
            repetitions.start_document()
            lines.start_document()
            for chunk in document:
                repetitions.add(chunk.text)
                lines.add(chunk.text)
                overlaps = texts.occur_in(chunk.text) or overlaps
                report(read_bytes + log.stream.position)
            # A document with text of an evaluation file is not kept, so it makes no other one a duplicate.
            if overlaps:
                overlapping += 1
                dropped.add(number)
            elif repetitions.is_repeated():
                duplicates += 1
                dropped.add(number)
            else:
                lines.keep()
        read_bytes += log.stream.position
        numbers.append(frozenset(dropped))
    return Dropped(numbers=tuple(numbers), duplicates=duplicates, overlapping=overlapping, lines=lines.found())


class DuplicateDocuments:
    """Whether a document repeats an earlier one, in the way that was chosen."""

    def __init__(self, duplicates: Duplicates | None) -> None:
        self.duplicates = duplicates
        self._seen: set[int] = set()
        self._near = NearDuplicates() if duplicates == "near" else None

    def start_document(self) -> None:
        """Begin a document."""
        self._hash = DocumentHash()
        if self._near is not None:
            self._near.start_document()

    def add(self, text: str) -> None:
        """Add the next chunk of the document."""
        self._hash.add(text)
        if self._near is not None:
            self._near.add(text)

    def is_repeated(self) -> bool:
        """Whether the document repeats one before; one that does not is remembered. A blank document does not."""
        if self.duplicates is None or self._hash.is_blank:
            return False
        if self._hash.value in self._seen or (self._near is not None and self._near.is_repeated()):
            return True
        self._seen.add(self._hash.value)
        if self._near is not None:
            self._near.keep()
        return False
