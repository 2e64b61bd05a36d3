"""Text files of any size as documents, in bounded memory.

``.txt``, ``.jsonl`` and ``.parquet``, each plain, ``.gz`` or ``.zst``. A document comes in chunks of at most
``MAX_CHUNK_CHARACTERS`` characters, so that one line of 100 MB needs no more memory than any other text.

Where a document of a ``.txt`` ends: by default at a blank line if the file has the form that BERT's own tools read
(google-research/bert ``create_pretraining_data.py``: one sentence per line, a blank line between documents), and at the
end of any other file, such as a book, whose blank lines separate paragraphs.
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
"""The tokenizer needs some 150 bytes per character, so this is 30 MB per chunk."""

_GUESS_LINES = 1000
_GUESS_CHARACTERS = 200_000
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]」』]*$")
_LEAST_ENDING = 0.7
_MOST_WITH_SEVERAL = 0.2


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How files are read: where documents end, which field has the text, and how bytes that are not UTF-8 are
    treated."""

    boundary: Boundary = "auto"
    field: str | None = None
    on_bad_bytes: BadBytes = "error"


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Part of document ``number`` of its file; with ``sentence_lines`` every line of it is one sentence."""

    number: int
    text: str
    sentence_lines: bool = False

    def sentences(self) -> list[str]:
        """The sentences in order, none of them blank; a line that is too long for a sentence is split like other
        text."""
        if not self.sentence_lines:
            return split_sentences(self.text)
        return [sentence for line in self.text.split("\n") for sentence in _sentences_of_line(line.strip())]


def _sentences_of_line(line: str) -> list[str]:
    return [line] if 0 < len(line) <= LONGEST_SENTENCE else split_sentences(line)


@dataclass(slots=True)
class ReadLog:
    """What was found while reading a file: its boundary and the form of its lines, and what was replaced in it.

    ``stream`` has the position in the file.
    """

    stream: ByteStream
    boundary: Boundary = "record"
    sentence_lines: bool = False
    decoding: DecodingLog = field(default_factory=DecodingLog)


def read_chunks(path: Path, reading: ReadOptions | None = None, log: ReadLog | None = None) -> Iterator[TextChunk]:
    """The documents of one file as chunks, in order. A document that is a record can be empty."""
    reading = reading or ReadOptions()
    log = log or ReadLog(ByteStream(path))
    kind = kind_of(path)
    if kind == "txt":
        return _read_text(path, reading, log)
    if reading.boundary not in ("auto", "record"):
        raise usage_error(f'{path} consists of records; its --boundary is "record", not "{reading.boundary}".')
    if kind == "parquet":
        return _split(read_parquet(log.stream, reading.field, reading.on_bad_bytes, log.decoding))
    lines = _lines(path, reading, log, LONGEST_RECORD)
    return _split(read_jsonl(path, lines, reading.field, reading.on_bad_bytes, log.decoding))


def read_texts(paths: Iterable[Path], reading: ReadOptions | None = None) -> Iterator[str]:
    """The text of all ``paths`` in bounded chunks, for training a vocabulary."""
    for path in paths:
        for chunk in read_chunks(path, reading):
            yield chunk.text


def kind_of(path: Path) -> str:
    """``txt``, ``jsonl`` or ``parquet``, by the name of the file; one without a suffix is text."""
    name = path.stem if path.suffix.lower() in COMPRESSIONS else path.name
    kind = Path(name).suffix.lower().removeprefix(".") or "txt"
    if kind not in ("txt", "jsonl", "parquet"):
        raise usage_error(f"{path} is not .txt, .jsonl or .parquet (each plain, .gz or .zst).")
    if path.is_dir():
        raise usage_error(f"{path} is a folder; name the files inside it.")
    # Checked before the work starts, so that a misspelt name does not end it after an hour.
    if not path.is_file():
        raise data_error(f"no file at {path}.{_suggest_name(path)}")
    return kind


def _suggest_name(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    return did_you_mean(path.name, [each.name for each in path.parent.iterdir()])


def _lines(path: Path, reading: ReadOptions, log: ReadLog, longest: int) -> Iterator[str]:
    return cut_lines(decode(path, log.stream, reading.on_bad_bytes, log.decoding), longest)


def _split(documents: Iterable[str]) -> Iterator[TextChunk]:
    for number, text in enumerate(documents):
        for chunk in [text] if len(text) <= MAX_CHUNK_CHARACTERS else _pack(cut_lines([text], MAX_CHUNK_CHARACTERS)):
            yield TextChunk(number, chunk)


def _pack(lines: Iterable[str]) -> Iterator[str]:
    """Join lines, as many as fit into a chunk."""
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
        raise usage_error(f'{path} is a text file; it has no records. Its --boundary is "blank-line" or "file".')
    lines = _lines(path, reading, log, MAX_CHUNK_CHARACTERS)
    head = _head(lines)
    log.boundary, log.sentence_lines = _guess_form(head)
    if reading.boundary != "auto":
        log.boundary = reading.boundary
    # The file is read once, so the lines that were read for the guess are put back.
    lines = itertools.chain(head, lines)
    for number, document in enumerate(_paragraphs(lines) if log.boundary == "blank-line" else [lines]):
        for text in _pack(document):
            yield TextChunk(number, text, log.sentence_lines)


def _paragraphs(lines: Iterable[str]) -> Iterator[Iterator[str]]:
    """The groups of lines between blank lines. Each group must be read before the next one is requested."""
    return (group for is_blank, group in itertools.groupby(lines, key=lambda line: not line.strip()) if not is_blank)


def _head(lines: Iterator[str]) -> list[str]:
    head: list[str] = []
    size = 0
    while len(head) < _GUESS_LINES and size < _GUESS_CHARACTERS and (line := next(lines, "")):
        head.append(line)
        size += len(line)
    return head


def _guess_form(head: list[str]) -> tuple[Boundary, bool]:
    """Guess from its first lines where documents of a text file end, and whether each line is a sentence.

    Blank lines end documents if at least 70 % of the lines end like a sentence (lines of wrapped text do not) and if
    the text between them has two lines or more on average (with one paragraph per line it has one). A line is a
    sentence if at least 70 % of the lines end like one and at most 20 % contain several.
    """
    full = [line.strip() for line in head if line.strip()]
    if sum(bool(_SENTENCE_END.search(line)) for line in full) < max(1, _LEAST_ENDING * len(full)):
        return "file", False
    with_several = sum(len(split_sentences(line)) > 1 for line in full)
    paragraphs = sum(1 for _ in _paragraphs(head))
    by_blank_line = len(full) < len(head) and len(full) >= 2 * paragraphs
    return "blank-line" if by_blank_line else "file", with_several <= _MOST_WITH_SEVERAL * len(full)
