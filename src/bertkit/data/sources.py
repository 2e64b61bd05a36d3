"""Text files of any size as documents, in bounded memory.

``.txt``, ``.jsonl`` and ``.parquet``, each plain, ``.gz`` or ``.zst``. A document comes in pieces of at most
``MAX_CHUNK_CHARACTERS`` characters, so that one line of 100 MB costs no more than any other text.

Where a document ends in a ``.txt``: by default at a blank line in a file of the form that BERT's own tools read
(google-research/bert ``create_pretraining_data.py``: a sentence a line, a blank line between documents), and at the
end of the file in any other, such as a book, whose blank lines are between paragraphs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.formats.compression import COMPRESSIONS, ByteStream
from bertkit.formats.decoding import BadBytes as BadBytes
from bertkit.formats.decoding import DecodingLog, cut_lines, decode
from bertkit.formats.records import LONGEST_RECORD, read_jsonl, read_parquet
from bertkit.text.sentences import LONGEST as LONGEST_SENTENCE
from bertkit.text.sentences import split_sentences

Boundary = Literal["auto", "blank-line", "file", "record"]

MAX_CHUNK_CHARACTERS = 200_000
"""Characters. The tokenizer needs some 150 bytes for each."""

_GUESS_LINES = 1000
_GUESS_CHARACTERS = 200_000
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]」』]*$")
_LEAST_ENDS = 0.7
_MOST_CROWDED = 0.2


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How files are read: where documents end, which field has the text, what happens to bytes that are not UTF-8."""

    boundary: Boundary = "auto"
    field: str | None = None
    on_bad_bytes: BadBytes = "error"


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Part of document ``number`` of its file. ``is_lines`` says that every line of it is one sentence."""

    number: int
    text: str
    is_lines: bool = False

    def sentences(self) -> list[str]:
        """Its sentences in their order, none of them blank; a line too long for a sentence is split as text is."""
        if not self.is_lines:
            return split_sentences(self.text)
        return [sentence for line in self.text.split("\n") for sentence in _sentences_of_line(line.strip())]


def _sentences_of_line(line: str) -> list[str]:
    return [line] if 0 < len(line) <= LONGEST_SENTENCE else split_sentences(line)


@dataclass(slots=True)
class ReadLog:
    """What reading a file came to: the boundary and the form of lines that were found, and what was mended.

    ``stream`` knows how far the reading is.
    """

    stream: ByteStream
    boundary: Boundary = "record"
    sentence_lines: bool = False
    decoding: DecodingLog = field(default_factory=DecodingLog)


def read_chunks(path: Path, reading: ReadOptions | None = None, log: ReadLog | None = None) -> Iterator[TextChunk]:
    """The documents of one file, in pieces and in order. A document can be empty where it is a record."""
    reading = reading or ReadOptions()
    log = log or ReadLog(ByteStream(path))
    kind = kind_of(path)
    if kind == "txt":
        return _read_text(path, reading, log)
    if reading.boundary not in ("auto", "record"):
        raise usage_error(f'{path} consists of records; its boundary is "record", not "{reading.boundary}".')
    if kind == "parquet":
        return _cut(read_parquet(log.stream, reading.field, reading.on_bad_bytes, log.decoding))
    lines = _lines(path, reading, log, LONGEST_RECORD)
    return _cut(read_jsonl(path, lines, reading.field, reading.on_bad_bytes, log.decoding))


def read_texts(paths: Iterable[Path], reading: ReadOptions | None = None) -> Iterator[str]:
    """All text of ``paths`` in bounded pieces, for training a vocabulary."""
    for path in paths:
        for piece in read_chunks(path, reading):
            yield piece.text


def kind_of(path: Path) -> str:
    """``txt``, ``jsonl`` or ``parquet``, by the name of the file; one without a suffix is text."""
    name = path.stem if path.suffix.lower() in COMPRESSIONS else path.name
    kind = Path(name).suffix.lower().removeprefix(".") or "txt"
    if kind not in ("txt", "jsonl", "parquet"):
        raise usage_error(f"{path} is not .txt, .jsonl or .parquet (each plain, .gz or .zst).")
    if path.is_dir():
        raise usage_error(f"{path} is a folder; name the files in it.")
    if not path.is_file():
        raise data_error(f"no file at {path}.{_neighbours(path)}")
    return kind


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    return did_you_mean(path.name, [each.name for each in path.parent.iterdir()])


def _lines(path: Path, reading: ReadOptions, log: ReadLog, longest: int) -> Iterator[str]:
    return cut_lines(decode(path, log.stream, reading.on_bad_bytes, log.decoding), longest)


def _cut(documents: Iterable[str]) -> Iterator[TextChunk]:
    for number, text in enumerate(documents):
        for part in [text] if len(text) <= MAX_CHUNK_CHARACTERS else _pack(cut_lines([text], MAX_CHUNK_CHARACTERS)):
            yield TextChunk(number, part)


def _pack(lines: Iterable[str]) -> Iterator[str]:
    """As many whole lines together as a piece holds."""
    held: list[str] = []
    size = 0
    for line in lines:
        if held and size + len(line) > MAX_CHUNK_CHARACTERS:
            yield "".join(held)
            held, size = [], 0
        held.append(line)
        size += len(line)
    if held:
        yield "".join(held)


def _read_text(path: Path, reading: ReadOptions, log: ReadLog) -> Iterator[TextChunk]:
    if reading.boundary == "record":
        raise usage_error(f'{path} is a text file; it has no records. Its boundary is "blank-line" or "file".')
    lines = _lines(path, reading, log, MAX_CHUNK_CHARACTERS)
    head = _head(lines)
    log.boundary, log.sentence_lines = _guess_form(head)
    if reading.boundary != "auto":
        log.boundary = reading.boundary
    lines = itertools.chain(head, lines)
    for number, document in enumerate(_blocks(lines) if log.boundary == "blank-line" else [lines]):
        for text in _pack(document):
            yield TextChunk(number, text, log.sentence_lines)


def _blocks(lines: Iterable[str]) -> Iterator[Iterator[str]]:
    """What is between blank lines, as lines that must be read before the next block is asked for."""
    return (block for is_blank, block in itertools.groupby(lines, key=lambda line: not line.strip()) if not is_blank)


def _head(lines: Iterator[str]) -> list[str]:
    head: list[str] = []
    size = 0
    while len(head) < _GUESS_LINES and size < _GUESS_CHARACTERS and (line := next(lines, "")):
        head.append(line)
        size += len(line)
    return head


def _guess_form(head: list[str]) -> tuple[Boundary, bool]:
    """Where documents end in a text file, and whether a line is a sentence, from its first lines.

    Blank lines end documents if there are some, if seven lines in ten end as sentences do (lines of wrapped text
    do not), and if a block between them has two lines or more on average (a paragraph on one line does not). A line
    is a sentence if seven in ten end as such and no more than two in ten hold several.
    """
    full = [line.strip() for line in head if line.strip()]
    if sum(bool(_SENTENCE_END.search(line)) for line in full) < max(1, _LEAST_ENDS * len(full)):
        return "file", False
    crowded = sum(len(split_sentences(line)) > 1 for line in full)
    blocks = sum(1 for _ in _blocks(head))
    by_blank_line = len(full) < len(head) and len(full) >= 2 * blocks
    return "blank-line" if by_blank_line else "file", crowded <= _MOST_CROWDED * len(full)
