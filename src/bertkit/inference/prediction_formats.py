"""The formats of a file of predictions: JSON Lines, JSON, CSV, TSV, Parquet and plain text.

Each is written from records as ``task.describe`` gives them. Text is made safe for spreadsheets: no cell is a formula,
and a lone carriage return stays inside its cell.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TextIO

from bertkit.errors import did_you_mean, usage_error
from bertkit.formats.arrow import require_parquet
from bertkit.task_types import AnswerColumns

Records = Iterable[Mapping[str, object]]

Writer = Callable[[Records, Path, AnswerColumns], None]
"""Writes the records into the file."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A spreadsheet takes a cell that begins like this for a formula, also after white space; the last four are the
full-width forms of the others."""

_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")

_HALF_CHARACTERS = "backslashreplace"
"""Half a character, which JSON can spell and UTF-8 cannot, is written as JSON spells it."""

_CONTROL_STARTS = ("\t", "\r", "\n")
_PARQUET = "writing .parquet"


def find_writer(output: Path) -> Writer:
    """The writer for the suffix of ``output``; an unknown suffix, or a missing library, is an error now."""
    if output.is_dir():
        raise usage_error(f"{output} is a folder. Name a file in it: {output / 'predictions.csv'}")
    suffix = output.suffix.lower()
    if suffix not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise usage_error(f'{output}: no format named "{suffix}".{did_you_mean(suffix, _WRITERS)} There are: {known}.')
    if suffix == ".parquet":
        require_parquet(_PARQUET)
    return _WRITERS[suffix]


def names_answers_by_id(output: Path) -> bool:
    """Whether the format of ``output`` is one object of id -> answer, so that no id may occur twice."""
    return output.suffix.lower() == ".json"


def write_object(records: Records, path: Path, field: str) -> None:
    """One JSON object, id -> ``field``, as the official programs of SQuAD read it."""
    by_id = {str(record["id"]): record[field] for record in records}
    path.write_text(json.dumps(by_id, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors=_HALF_CHARACTERS)


def _write_jsonl(records: Records, path: Path, columns: AnswerColumns) -> None:
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS) as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _write_json(records: Records, path: Path, columns: AnswerColumns) -> None:
    write_object(records, path, columns.answer)


def _write_txt(records: Records, path: Path, columns: AnswerColumns) -> None:
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS) as file:
        for record in records:
            file.write(" ".join(str(_cell(record[columns.answer], columns)).splitlines()) + "\n")


def _write_csv(records: Records, path: Path, columns: AnswerColumns, *, delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS, newline="") as file:
        writer = csv.writer(_UnixLines(file), delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(columns.columns)
        for record in records:
            writer.writerow([_without_formula(_cell(record.get(name, ""), columns)) for name in columns.columns])


def _write_tsv(records: Records, path: Path, columns: AnswerColumns) -> None:
    _write_csv(records, path, columns, delimiter="\t")


def _write_parquet(records: Records, path: Path, columns: AnswerColumns) -> None:
    arrow, parquet = require_parquet(_PARQUET)
    rows = [{name: _encodable(record.get(name)) for name in columns.columns} for record in records]
    parquet.write_table(arrow.Table.from_pylist(rows), path)


def _encodable(value: object) -> object:
    return value.encode("utf-8", _HALF_CHARACTERS).decode() if isinstance(value, str) else value


def _cell(value: object, columns: AnswerColumns) -> object:
    """The value as one cell; several values, such as tags, are joined as the task does."""
    return columns.join(value) if isinstance(value, list) else value


def _without_formula(cell: object) -> object:
    """A text that a spreadsheet would run as a formula gets an apostrophe before it; a number is none."""
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    risky = cell.startswith(_CONTROL_STARTS) or cell.lstrip(" \ufeff\u00a0").startswith(_FORMULA_STARTS)
    return f"'{cell}" if risky else cell


class _UnixLines:
    """Ends rows with a line feed alone. The csv module quotes a carriage return only if rows end with one."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix("\r\n") + "\n")


_WRITERS: Mapping[str, Writer] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": _write_jsonl,
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".txt": _write_txt,
}

WRITTEN_FORMATS = tuple(_WRITERS)
"""The suffixes of files that predictions can be written to."""
