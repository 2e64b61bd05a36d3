"""Text files of any size as documents, in bounded memory.

``.txt``, ``.jsonl`` and ``.parquet``, each plain, ``.gz`` or ``.zst``. A document comes in pieces of at most
``LONGEST_PIECE`` characters, so that one line of 100 MB costs no more than any other text.
"""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import zstandard

from bertkit.errors import BertkitError, data_error, did_you_mean, usage_error

Boundary = Literal["auto", "blank-line", "file", "record"]
BadBytes = Literal["error", "replace"]

LONGEST_PIECE = 500_000
"""Characters. The tokenizer needs some 150 bytes for each."""

_BLOCK = 1 << 20
_LONGEST_RECORD = 1 << 28
_TEXT_FIELDS = ("text", "content", "body", "document", "article", "sentence")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GUESS_LINES = 2000
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of document ``number`` of its file. ``is_lines`` says that every line of it is one sentence."""

    number: int
    text: str
    is_lines: bool = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read: where documents end, which field has the text, what happens to bytes that are not UTF-8."""

    boundary: Boundary = "auto"
    field: str | None = None
    on_bad_bytes: BadBytes = "error"


@dataclass(slots=True)
class ReadCounts:
    """What was repaired on the way."""

    replaced_characters: int = 0


def read_pieces(path: Path, reading: Reading, counts: ReadCounts | None = None) -> Iterator[Piece]:
    """The documents of one file, in pieces and in order."""
    kind = _kind(path)
    if kind == "parquet":
        return _cut(_read_parquet(path, reading.field))
    lines = _read_lines(path, reading, counts or ReadCounts())
    if kind == "jsonl":
        return _cut(_read_records(path, lines, reading.field))
    return _read_text(path, lines, reading)


def read_texts(paths: Iterable[Path], reading: Reading | None = None) -> Iterator[str]:
    """All text of ``paths`` in bounded pieces, for training a vocabulary."""
    for path in paths:
        for piece in read_pieces(path, reading or Reading()):
            yield piece.text


def _kind(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix not in (".gz", ".zst")]
    kind = suffixes[-1].lstrip(".") if suffixes else "txt"
    if kind not in ("txt", "jsonl", "parquet"):
        raise usage_error(f"{path} is not .txt, .jsonl or .parquet (each plain, .gz or .zst).")
    if not path.is_file():
        raise data_error(f"no file at {path}.{_neighbours(path)}")
    return kind


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    return did_you_mean(path.name, [each.name for each in path.parent.iterdir()])


def _open(path: Path) -> Any:
    try:
        if path.suffix == ".gz":
            return io.BufferedReader(gzip.open(path))
        if path.suffix == ".zst":
            return zstandard.open(path, "rb")
        return path.open("rb")
    except OSError as error:
        raise data_error(f"cannot read {path}: {error.strerror or error}.") from error


def _read_blocks(path: Path, reading: Reading, counts: ReadCounts) -> Iterator[str]:
    """Decoded blocks with every line end as ``\\n``; errors name the byte and the line."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict" if reading.on_bad_bytes == "error" else "replace")
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    offset, line = 0, 1
    with _open(path) as file:
        while True:
            try:
                block = file.read(_BLOCK)
            except (OSError, EOFError, zstandard.ZstdError) as error:
                raise data_error(f"{path} is damaged or cut off: {error}.") from error
            if offset == 0 and block[:2] in _UTF16:
                raise data_error(f"{path} is UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 {path}")
            if offset == 0:
                block = block.removeprefix(codecs.BOM_UTF8)
            pending = len(decoder.getstate()[0])
            try:
                decoded = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise data_error(
                    f"{path}, line {line:,}: byte {offset - pending + error.start:,} is not UTF-8. "
                    "Convert the file, or replace such bytes with --on-bad-bytes replace."
                ) from error
            counts.replaced_characters += decoded.count("\ufffd") - block.count("\ufffd".encode())
            text = newlines.decode(decoded, final=not block)
            if text:
                yield text
            if not block:
                return
            offset += len(block)
            line += block.count(b"\n")


def _read_lines(path: Path, reading: Reading, counts: ReadCounts) -> Iterator[str]:
    """Lines with their ``\\n``; one longer than a piece comes in parts, cut at a space where there is one."""
    limit = LONGEST_PIECE if _kind(path) == "txt" else _LONGEST_RECORD
    rest: list[str] = []
    held = 0
    for block in _read_blocks(path, reading, counts):
        for part in block.splitlines(keepends=True) if "\n" in block else [block]:
            rest.append(part)
            held += len(part)
            if part.endswith("\n"):
                yield "".join(rest)
                rest, held = [], 0
            elif held > limit:
                joined = "".join(rest)
                at = joined.rfind(" ", limit // 2, limit) + 1 or limit
                yield joined[:at]
                rest, held = [joined[at:]], len(joined) - at
    if rest:
        yield "".join(rest)


def _read_records(path: Path, lines: Iterator[str], field: str | None) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise data_error(f"{path}, line {number:,}: not JSON: {error}.") from error
        if isinstance(record, str):
            yield record
            continue
        if not isinstance(record, dict):
            raise data_error(f"{path}, line {number:,}: expected an object with a text, found {type(record).__name__}.")
        field = field or _guess_field([name for name, value in record.items() if isinstance(value, str)], path)
        if not isinstance(record.get(field), str):
            known = ", ".join(record)
            raise data_error(
                f'{path}, line {number:,}: no text in "{field}". Its fields: {known}.{did_you_mean(field, record)}'
            )
        yield record[field]


def _read_parquet(path: Path, field: str | None) -> Iterator[str]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise usage_error(f"{path}: reading Parquet needs pyarrow: pip install 'bertkit[parquet]'") from error
    try:
        file = parquet.ParquetFile(path)
        texts = [column.name for column in file.schema_arrow if str(column.type) in ("string", "large_string")]
        field = field or _guess_field(texts, path)
        if field not in texts:
            raise data_error(
                f'{path} has no text column "{field}". It has: {", ".join(texts)}.{did_you_mean(field, texts)}'
            )
        for batch in file.iter_batches(batch_size=256, columns=[field]):
            yield from (text for text in batch.column(0).to_pylist() if text is not None)
    except BertkitError:
        raise
    except (OSError, ValueError) as error:
        raise data_error(f"{path} is not a whole Parquet file: {error}.") from error


def _guess_field(texts: list[str], path: Path) -> str:
    for name in _TEXT_FIELDS:
        if name in texts:
            return name
    if len(texts) == 1:
        return texts[0]
    found = ", ".join(texts) or "none"
    raise data_error(f"{path}: which field is the text? Fields with text: {found}. Name one with --field.")


def _cut(documents: Iterator[str]) -> Iterator[Piece]:
    for number, text in enumerate(documents):
        for at in range(0, max(1, len(text)), LONGEST_PIECE):
            yield Piece(number, text[at : at + LONGEST_PIECE])


def _read_text(path: Path, lines: Iterator[str], reading: Reading) -> Iterator[Piece]:
    """Documents of a text file: by blank line or the whole of it."""
    head = list(itertools.islice(lines, _GUESS_LINES))
    lines = itertools.chain(head, lines)
    is_lines = _has_sentence_lines(head)
    if reading.boundary == "record":
        raise usage_error(f'{path} is a text file; it has no records. Use the boundary "blank-line" or "file".')
    by_blank_line = reading.boundary == "blank-line" or (reading.boundary == "auto" and is_lines)
    number, held, size = 0, [], 0
    for line in lines:
        ends_document = by_blank_line and not line.strip()
        held.append(line)
        size += len(line)
        if size > LONGEST_PIECE or (ends_document and size > len(line)):
            yield Piece(number, "".join(held), is_lines)
            held, size = [], 0
        number += ends_document
    if held:
        yield Piece(number, "".join(held), is_lines)


def _has_sentence_lines(head: list[str]) -> bool:
    """Whether a file is in the form of BERT's own tools: one sentence a line, a blank line between documents.

    A book has blank lines too, between paragraphs of wrapped lines or of one long line each. So: seven lines in
    ten end as sentences do, and a block between blank lines has two lines or more on average.
    """
    full = [line.strip() for line in head if line.strip()]
    blocks = sum(1 for blank, _ in itertools.groupby(head, key=lambda line: not line.strip()) if not blank)
    if not full or blocks == len(full):
        return False
    ends = sum(bool(_SENTENCE_END.search(line)) for line in full)
    return ends >= 0.7 * len(full) and len(full) >= 2 * blocks
