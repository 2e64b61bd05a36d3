"""Text files of any size as documents, in bounded memory.

``formats.text_files.check_text_file`` chooses by the name of a file how it is read. A document comes in chunks of at
most ``MAX_CHUNK_CHARACTERS`` characters, so that one line of 100 MB needs no more memory than any other text.

Where a document of a ``.txt`` ends: by default at a blank line if the file has the form that BERT's own tools read
(google-research/bert ``create_pretraining_data.py``: one sentence per line, a blank line between documents), and at the
end of any other file, such as a book, whose blank lines separate paragraphs.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal

from bertkit.errors import usage_error
from bertkit.formats.compression import ByteStream
from bertkit.formats.decoding import BadBytes as BadBytes
from bertkit.formats.decoding import DecodingLog, cut_lines, decode
from bertkit.formats.markup import read_html, read_markdown
from bertkit.formats.mediawiki import read_mediawiki
from bertkit.formats.plain_text import WIKI_EXTRACTOR, drop_gutenberg_frame, read_wiki_extractor
from bertkit.formats.records import LONGEST_RECORD, find_field, read_jsonl, read_parquet
from bertkit.formats.text_files import check_text_file
from bertkit.formats.wet import read_wet
from bertkit.storage.suffixes import suffix_of
from bertkit.text.sentences import LONGEST as LONGEST_SENTENCE
from bertkit.text.sentences import split_sentences

Boundary = Literal["auto", "blank-line", "line", "file", "record"]

MAX_CHUNK_CHARACTERS = 200_000
"""The tokenizer needs some 150 bytes per character, so this is 30 MB per chunk."""

_JSON_RECORD = '{"'
"""How a file of records begins. WikiExtractor's --json writes such files without a suffix."""

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
class LineForm:
    """How the lines of a file make documents: records of JSON with the text in ``field``, or plain text.

    With ``sentence_lines`` every line of plain text is one sentence.
    """

    boundary: Boundary
    sentence_lines: bool = False
    field: str | None = None


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


def by_document(chunks: Iterable[TextChunk]) -> Iterator[tuple[int, Iterator[TextChunk]]]:
    """The number of each document of a file, and its chunks, which must be read before the next document."""
    return itertools.groupby(chunks, key=attrgetter("number"))


def _sentences_of_line(line: str) -> list[str]:
    return [line] if 0 < len(line) <= LONGEST_SENTENCE else split_sentences(line)


@dataclass(slots=True)
class ReadLog:
    """What was found while reading a file: its boundary and the form of its lines, and what was replaced in it.

    ``stream`` has the position in the file. ``origin`` is the program or library that the file was recognized to be
    from.
    """

    stream: ByteStream
    boundary: Boundary = "record"
    sentence_lines: bool = False
    origin: str = ""
    decoding: DecodingLog = field(default_factory=DecodingLog)


def read_chunks(path: Path, reading: ReadOptions | None = None, log: ReadLog | None = None) -> Iterator[TextChunk]:
    """The documents of one file as chunks, in order. A document that is a record can be empty."""
    reading = reading or ReadOptions()
    log = log or ReadLog(ByteStream(path))
    text = decode(path, log.stream, reading.on_bad_bytes, log.decoding)
    match check_text_file(path):
        case "txt":
            return _read_text(path, text, reading, log)
        case "jsonl":
            documents = _read_jsonl(path, text, reading, log)
        case "parquet":
            documents = read_parquet(log.stream, reading.field, reading.on_bad_bytes, log.decoding)
        case "wet":
            documents = read_wet(log.stream, reading.on_bad_bytes, log.decoding)
        case "mediawiki":
            documents = read_mediawiki(path, text)
        case "html":
            documents = read_html(path, text)
        case "markdown":
            documents = read_markdown(path, text)
    return _read_records(path, documents, reading)


def read_texts(paths: Iterable[Path], reading: ReadOptions | None = None, *, share: float = 1.0) -> Iterator[str]:
    """The text of all ``paths`` in bounded chunks, for training a vocabulary.

    Of a ``share`` below 1 the chunks are drawn at random, the same ones every time.
    """
    draw = random.Random(0)
    for path in paths:
        for chunk in read_chunks(path, reading):
            if draw.random() < share:
                yield chunk.text


def find_line_form(path: Path, reading: ReadOptions) -> LineForm | None:
    """The form of a file of which any lines can be read without those before them; None for other files."""
    kind = check_text_file(path)
    if kind not in ("txt", "jsonl"):
        return None
    text = decode(path, ByteStream(path), reading.on_bad_bytes, DecodingLog())
    first = next(text, "")
    text = itertools.chain([first], text)
    if kind == "jsonl" or _has_records(path, first):
        _require_records(path, reading)
        head = itertools.islice(cut_lines(text, LONGEST_RECORD), _GUESS_LINES)
        return LineForm("record", field=reading.field or find_field(path, head))
    if first.startswith(WIKI_EXTRACTOR):
        return None
    lines, is_gutenberg = drop_gutenberg_frame(cut_lines(text, MAX_CHUNK_CHARACTERS))
    return None if is_gutenberg else _choose_form(path, _head(lines), reading)


def _has_records(path: Path, first: str) -> bool:
    """Whether a text file, which begins with ``first``, has records of JSON all the same."""
    return first.startswith(_JSON_RECORD) and not suffix_of(path)


def _read_jsonl(path: Path, text: Iterable[str], reading: ReadOptions, log: ReadLog) -> Iterator[str]:
    lines = cut_lines(text, LONGEST_RECORD)
    return read_jsonl(path, lines, reading.field, reading.on_bad_bytes, log.decoding)


def _read_records(path: Path, documents: Iterable[str], reading: ReadOptions) -> Iterator[TextChunk]:
    _require_records(path, reading)
    return split_documents(documents)


def _require_records(path: Path, reading: ReadOptions) -> None:
    if reading.boundary not in ("auto", "record"):
        raise usage_error(f'{path} consists of records; its --boundary is "record", not "{reading.boundary}".')


def split_documents(documents: Iterable[str]) -> Iterator[TextChunk]:
    """The chunks of documents that are records. A record can be empty."""
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


def _read_text(path: Path, text: Iterator[str], reading: ReadOptions, log: ReadLog) -> Iterator[TextChunk]:
    first = next(text, "")
    # The file is read once, so what was read to recognize it is put back.
    text = itertools.chain([first], text)
    if first.startswith(WIKI_EXTRACTOR):
        log.origin = "WikiExtractor"
        documents = read_wiki_extractor(path, cut_lines(text, MAX_CHUNK_CHARACTERS))
        yield from _read_records(path, documents, reading)
    elif _has_records(path, first):
        yield from _read_records(path, _read_jsonl(path, text, reading, log), reading)
    else:
        yield from _read_plain_text(path, text, reading, log)


def _read_plain_text(path: Path, text: Iterator[str], reading: ReadOptions, log: ReadLog) -> Iterator[TextChunk]:
    lines, is_gutenberg = drop_gutenberg_frame(cut_lines(text, MAX_CHUNK_CHARACTERS))
    log.origin = "Project Gutenberg" if is_gutenberg else ""
    head = _head(lines)
    form = _choose_form(path, head, reading)
    log.boundary, log.sentence_lines = form.boundary, form.sentence_lines
    yield from split_lines(itertools.chain(head, lines), form)


def split_lines(lines: Iterable[str], form: LineForm) -> Iterator[TextChunk]:
    """The chunks of the documents in lines of plain text."""
    for number, document in enumerate(_split(lines, form.boundary)):
        for packed in _pack(document):
            yield TextChunk(number, packed, form.sentence_lines)


def _split(lines: Iterable[str], boundary: Boundary) -> Iterable[Iterable[str]]:
    """The lines of each document, which must be read before the next document is requested."""
    match boundary:
        case "blank-line":
            return _paragraphs(lines)
        case "line":
            return _single_lines(iter(lines))
    return [lines]


def is_blank(line: str) -> bool:
    """Whether a line has white space only."""
    return not line.strip()


def _paragraphs(lines: Iterable[str]) -> Iterator[Iterator[str]]:
    """The groups of lines between blank lines."""
    return (group for is_between, group in itertools.groupby(lines, key=is_blank) if not is_between)


def _single_lines(lines: Iterator[str]) -> Iterator[Iterator[str]]:
    """Each line that is not blank; one that is too long for a chunk was cut, and only its last part has an end."""
    return (_whole_line(first, lines) for first in lines if not is_blank(first))


def _whole_line(part: str, lines: Iterator[str]) -> Iterator[str]:
    yield part
    while not part.endswith("\n") and (part := next(lines, "")):
        yield part


def _head(lines: Iterator[str]) -> list[str]:
    head: list[str] = []
    size = 0
    while len(head) < _GUESS_LINES and size < _GUESS_CHARACTERS and (line := next(lines, "")):
        head.append(line)
        size += len(line)
    return head


def _choose_form(path: Path, head: list[str], reading: ReadOptions) -> LineForm:
    if reading.boundary == "record":
        raise usage_error(
            f'{path} is a text file; it has no records. Its --boundary is "blank-line", "line" or "file".'
        )
    guess = _guess_form(head)
    return guess if reading.boundary == "auto" else replace(guess, boundary=reading.boundary)


def _guess_form(head: list[str]) -> LineForm:
    """Guess from its first lines where documents of a text file end, and whether each line is a sentence.

    Blank lines end documents if at least 70 % of the lines end like a sentence (lines of wrapped text do not) and if
    the text between them has two lines or more on average (with one paragraph per line it has one). A line is a
    sentence if at least 70 % of the lines end like one and at most 20 % contain several.
    """
    full = [line.strip() for line in head if line.strip()]
    if sum(bool(_SENTENCE_END.search(line)) for line in full) < max(1, _LEAST_ENDING * len(full)):
        return LineForm("file")
    with_several = sum(len(split_sentences(line)) > 1 for line in full)
    paragraphs = sum(1 for _ in _paragraphs(head))
    by_blank_line = len(full) < len(head) and len(full) >= 2 * paragraphs
    sentence_lines = with_several <= _MOST_WITH_SEVERAL * len(full)
    return LineForm("blank-line" if by_blank_line else "file", sentence_lines=sentence_lines)
