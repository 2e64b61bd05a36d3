"""Parts of files: consecutive lines of one file, or consecutive documents of one that does not consist of lines.

Where a part ends depends on the text and a limit in bytes alone. It ends after the last document that fits. A document
that does not fit begins a part, and ends after the last line that fits, so that copies of a document are divided alike
wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.data.sources import (
    MAX_CHUNK_CHARACTERS,
    Boundary,
    LineForm,
    TextChunk,
    by_document,
    is_blank,
    split_documents,
    split_lines,
)
from bertkit.errors import BertkitError, data_error
from bertkit.formats.compression import ByteStream
from bertkit.formats.decoding import BadBytes, DecodingLog, count_lines, cut_lines, decode
from bertkit.formats.records import LONGEST_RECORD, read_jsonl

_BYTES_PER_CHARACTER = 4
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PartText:
    """The chunks of a part.

    ``starts_inside`` and ``ends_inside``: whether the first document may have begun in the part before, and whether the
    last one may go on in the next part. ``replaced`` counts bytes that are not UTF-8.
    """

    chunks: Sequence[TextChunk]
    starts_inside: bool
    ends_inside: bool
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class LinePart:
    """``size`` bytes from ``begin`` on of the decompressed ``file``.

    ``content`` has them if the file is compressed; a plain file is read where the part is needed.
    """

    file: Path
    form: LineForm
    on_bad_bytes: BadBytes
    begin: int
    size: int
    content: bytes | None = None

    def __len__(self) -> int:
        return self.size

    def read(self) -> PartText:
        """The text of the part. An error has the line in the file."""
        try:
            return self._parse(1)
        except BertkitError:
            if not self.begin:
                raise
            # Only an error needs the number of the first line, for which all lines before it are counted.
            return self._parse(1 + count_lines(ByteStream(self.file), self.begin))

    def _blocks(self) -> Iterator[bytes]:
        """The bytes of the part. They are not in memory at the same time as the text, which can be one long line."""
        if self.content is not None:
            yield self.content
            return
        left = self.size
        try:
            with self.file.open("rb") as file:
                file.seek(self.begin)
                while left and (block := file.read(min(left, _BLOCK_BYTES))):
                    left -= len(block)
                    yield block
        except OSError as error:
            raise data_error(f"{self.file} cannot be read: {error.strerror or error}.") from error
        if left:
            raise data_error(f"{self.file} has become shorter while it was read. Repeat the command when it is whole.")

    def _parse(self, first_line: int) -> PartText:
        log = DecodingLog()
        text = decode(self.file, self._blocks(), self.on_bad_bytes, log, offset=self.begin, first_line=first_line)
        if self.form.boundary == "record":
            records = read_jsonl(
                self.file,
                cut_lines(text, LONGEST_RECORD),
                self.form.field,
                self.on_bad_bytes,
                log,
                first_line=first_line,
            )
            return PartText(list(split_documents(records)), False, False, log.replaced)
        lines = list(cut_lines(text, MAX_CHUNK_CHARACTERS))
        chunks = list(split_lines(lines, self.form))
        # In a file that is one document, blank lines end nothing. A byte order mark alone is no line.
        first, last = (self.form.boundary == "file" or not is_blank("".join(lines[at:][:1])) for at in (0, -1))
        if self.form.boundary == "line":
            last = last and not lines[-1].endswith("\n")
        return PartText(chunks, first, last, log.replaced)


@dataclass(frozen=True, slots=True)
class DocumentsPart:
    """Whole documents, or with ``starts_inside`` the next chunks of a document that is larger than a part."""

    chunks: tuple[TextChunk, ...]
    starts_inside: bool

    def __len__(self) -> int:
        return sum(len(chunk.text) for chunk in self.chunks)

    def read(self) -> PartText:
        """The chunks, which were read already."""
        return PartText(self.chunks, self.starts_inside, ends_inside=True)


Part = LinePart | DocumentsPart


def group_documents(chunks: Iterable[TextChunk], size: int) -> Iterator[DocumentsPart]:
    """Parts of up to ``size`` characters."""
    group, group_size = list[TextChunk](), 0
    for _, document in by_document(chunks):
        held, held_size, is_large = list[TextChunk](), 0, False
        for chunk in document:
            if held and held_size + len(chunk.text) > size:
                if group:
                    yield DocumentsPart(tuple(group), starts_inside=False)
                    group, group_size = [], 0
                yield DocumentsPart(tuple(held), starts_inside=is_large)
                held, held_size, is_large = [], 0, True
            held.append(chunk)
            held_size += len(chunk.text)
        if is_large or (group and group_size + held_size > size):
            if group:
                yield DocumentsPart(tuple(group), starts_inside=False)
            group, group_size = [], 0
        if is_large:
            yield DocumentsPart(tuple(held), starts_inside=True)
        else:
            group += held
            group_size += held_size
    if group:
        yield DocumentsPart(tuple(group), starts_inside=False)


def cut_lines_into_parts(blocks: Iterable[bytes], boundary: Boundary, size: int) -> Iterator[bytes]:
    """The bytes of ``blocks`` in parts of at most ``size``; a record that is longer is a part of its own."""
    held = bytearray()
    for block in blocks:
        held += block
        while len(held) > size and (end := _find_end(held, boundary, size)):
            yield bytes(held[:end])
            del held[:end]
    while held:
        end = (len(held) > size and _find_end(held, boundary, size)) or len(held)
        yield bytes(held[:end])
        del held[:end]


def _find_end(held: bytearray, boundary: Boundary, size: int) -> int:
    """Where the first part of ``held`` ends, which is longer than ``size``; 0 if more of a record must be read."""
    newline = b"\n" if held.find(b"\n", 0, size) >= 0 else b"\r"
    # The last byte is left out: a carriage return there may belong to the line feed after it.
    end = held.rfind(newline, 0, size - (newline == b"\r")) + 1
    if boundary == "blank-line" and end:
        return _find_blank_line(held, newline, end) or end
    if boundary == "record" and not end:
        end = held.find(b"\n", size) + 1
        return end if end or len(held) < LONGEST_RECORD * _BYTES_PER_CHARACTER else len(held)
    if end:
        return end
    # More than white space must remain of the line: a line of it ends a document.
    last = len(_without_white_space(held[: _find_character(held, size)])) or size
    return held.rfind(b" ", size // 2, last) + 1 or _find_character(held, last - 1)


def _without_white_space(held: bytearray) -> bytes:
    """UTF-8 without the white space at its end, also that beyond ASCII."""
    return held.decode("utf-8", "surrogateescape").rstrip().encode("utf-8", "surrogateescape")


def _find_blank_line(held: bytearray, newline: bytes, end: int) -> int:
    """The end of the last blank line before ``end``, where a line ends; 0 if there is none."""
    while end:
        start = held.rfind(newline, 0, end - 1) + 1
        if not _without_white_space(held[start:end]):
            return end
        end = start
    return 0


def _find_character(held: bytearray, end: int) -> int:
    """The start of the character of UTF-8 that has the byte at ``end``, which may be 0."""
    starts = (at for at in range(end, max(-1, end - _BYTES_PER_CHARACTER), -1) if held[at] & 0xC0 != 0x80)
    return next(starts, end)
