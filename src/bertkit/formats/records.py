"""The texts in records of JSON Lines and Parquet: in one field, which is guessed or given."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bertkit.errors import data_error, did_you_mean
from bertkit.formats.arrow import check_names, list_values, open_parquet, require_parquet, text_columns, unpacked_size
from bertkit.formats.compression import ByteStream, check_unpacked
from bertkit.formats.decoding import BadBytes, DecodingLog, decode_value
from bertkit.storage.json_text import parse_json
from bertkit.storage.suffixes import COMPRESSIONS

LONGEST_RECORD = 1 << 27
"""Characters of one line of JSON; a whole line must fit into memory."""

_TEXT_FIELDS = ("text", "content", "body", "document", "article", "passage", "sentence")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PARQUET_ROWS = 64


def read_jsonl(
    path: Path,
    lines: Iterable[str],
    field: str | None,
    on_bad_bytes: BadBytes,
    log: DecodingLog,
    *,
    first_line: int = 1,
) -> Iterator[str]:
    """The text of each line, which is an object with a text field, or a string. A text that is null is empty."""
    for place, record in _parse_all(path, lines, first_line):
        if isinstance(record, dict):
            field = field or _guess_field(record, place)
            record = _text_of(place, record, field)
        yield _without_surrogates(place, record, on_bad_bytes, log)


def find_field(path: Path, lines: Iterable[str]) -> str | None:
    """The field with the text in the first object; None if all ``lines`` are strings."""
    objects = ((place, record) for place, record in _parse_all(path, lines, 1) if isinstance(record, dict))
    return next((_guess_field(record, place) for place, record in objects), None)


def _parse_all(path: Path, lines: Iterable[str], first_line: int) -> Iterator[tuple[str, dict[str, object] | str]]:
    """The place and the content of every line that is not blank."""
    for number, line in enumerate(lines, start=first_line):
        if line.strip():
            place = f"{path}, line {number:,}"
            yield place, _parse(place, line)


def _parse(place: str, line: str) -> dict[str, object] | str:
    if len(line) >= LONGEST_RECORD:
        raise data_error(f"{place} is longer than {LONGEST_RECORD:,} characters. Cut the document into several.")
    try:
        record = parse_json(line)
    except json.JSONDecodeError as error:
        raise data_error(f"{place} is not JSON: {error.msg} at character {error.pos + 1:,}.") from error
    except ValueError as error:
        raise data_error(f"{place} is not JSON that can be read: {error}.") from error
    if not isinstance(record, dict | str):
        raise data_error(f"{place} is neither an object with a text field nor a text: write one of them per line.")
    return record


def _text_of(place: str, record: dict[str, object], field: str) -> str:
    if field not in record:
        raise data_error(
            f'{place} has no field "{field}". Its fields: {", ".join(record)}.{did_you_mean(field, record)}'
        )
    text = record[field]
    if text is not None and not isinstance(text, str):
        raise data_error(
            f'{place}: field "{field}" is of type {type(text).__name__}, not text. Name another with --field.'
        )
    return text or ""


def _without_surrogates(place: str, text: str, on_bad_bytes: BadBytes, log: DecodingLog) -> str:
    """The text without lone surrogates: JSON can spell half of an emoji (``\\ud83d``), which UTF-8 cannot encode."""
    if text.isascii() or not (found := _LONE_SURROGATE.search(text)):
        return text
    if on_bad_bytes == "error":
        raise data_error(
            f"{place}: \\u{ord(found.group()):04x} is an unpaired surrogate, such as half of an emoji. Fix the text, "
            "or replace such characters and count them with --on-bad-bytes replace."
        )
    log.first_bad = log.first_bad or place
    text, replaced = _LONE_SURROGATE.subn("\ufffd", text)
    log.replaced += replaced
    return text


def _guess_field(record: dict[str, object], place: str) -> str:
    texts = [name for name, value in record.items() if isinstance(value, str)]
    if not set(texts) & set(_TEXT_FIELDS):  # a text that is null says more than a title that is not
        texts = [name for name, value in record.items() if name in _TEXT_FIELDS and value is None] or texts
    return _choose_field(texts, place)


def _choose_field(texts: list[str], place: str) -> str:
    for name in _TEXT_FIELDS:
        if name in texts:
            return name
    if len(texts) == 1:
        return texts[0]
    found = ", ".join(texts) or "none"
    raise data_error(f"{place}: which field is the text? Fields with text: {found}. Name one with --field.")


def read_parquet(stream: ByteStream, field: str | None, on_bad_bytes: BadBytes, log: DecodingLog) -> Iterator[str]:
    """The text of each row, in bounded memory whatever the size of the row groups. A text that is null is empty."""
    path = stream.path
    pyarrow, _ = require_parquet(str(path))
    options: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}
    with _seekable(stream) as file:
        with open_parquet(path, file, **options) as table:
            field = _parquet_field(path, table.schema_arrow, field)
            check_unpacked(path, unpacked_size(table.metadata, [field]))
        # A text that many rows share stays in the file's dictionary: 64 copies of it could fill the memory.
        with open_parquet(path, file, read_dictionary=[field], **options) as table:
            size, rows, number = path.stat().st_size, table.metadata.num_rows, 0
            for batch in table.iter_batches(batch_size=_PARQUET_ROWS, columns=[field]):
                column = batch.column(0)
                binary = column.dictionary.cast(pyarrow.large_binary())
                for value in list_values(pyarrow.DictionaryArray.from_arrays(column.indices, binary)):
                    number += 1
                    stream.position = size * number // rows
                    yield decode_value(f"{path}, row {number:,}", value or b"", on_bad_bytes, log)


def _parquet_field(path: Path, schema: Any, field: str | None) -> str:
    check_names(path, schema.names)
    texts = text_columns(schema)
    field = field or _choose_field(texts, str(path))
    if field not in texts:
        raise data_error(
            f'{path} has no text column "{field}". It has: {", ".join(texts)}.{did_you_mean(field, texts)}'
        )
    return field


@contextmanager
def _seekable(stream: ByteStream) -> Iterator[IO[bytes]]:
    """A file that can be read from its end, as Parquet is; a compressed one is decompressed to disk first."""
    if stream.path.suffix.lower() not in COMPRESSIONS:
        with stream.path.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as unpacked:
        for block in stream:
            unpacked.write(block)
        unpacked.seek(0)
        yield unpacked
