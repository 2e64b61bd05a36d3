"""The formats of a file of predictions: JSON Lines, JSON, CSV, TSV, Parquet and plain text.

Each is written from records as ``task.describe`` gives them. Text is made safe for spreadsheets: no cell is a formula,
and a lone carriage return stays inside its cell.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO

from bertkit.errors import did_you_mean, usage_error
from bertkit.formats.arrow import require_parquet
from bertkit.formats.cells import spell_cell
from bertkit.task_types import AnswerColumns

Records = Iterable[Mapping[str, object]]
"""Predictions in memory, or in a file: they can be read twice, and are never all in memory at once."""

Writer = Callable[[Records, Path, AnswerColumns], None]
"""Writes the records into the file."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A spreadsheet takes a cell that begins like this for a formula, also after white space; the last four are the
full-width forms of the others."""

_NUMBER = re.compile(r"[+-]?([0-9]+([.,][0-9]+)*|[.,][0-9]+)([eE][+-]?[0-9]+)?")
"""Also ``-1,234.50`` and ``-1,5``, and without white space, after which a spreadsheet may find a formula."""

_HALF_CHARACTERS = "backslashreplace"
"""Half a character, which JSON can spell and UTF-8 cannot, is written as JSON spells it."""

_TEXTS = "texts"
"""Lists of texts; the other names of types are Arrow's."""

_ARROW_TYPES: Mapping[type, str] = {bool: "bool", int: "int64", float: "float64"}

_LARGEST_EXACT_FLOAT = 2**53
_LARGE = "large int64"
"""Integers beyond that number, which may change when they become floats."""

_ROWS_AT_ONCE = 10_000

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
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS) as file:
        file.write("{")
        for number, record in enumerate(records):
            id, value = (json.dumps(each, ensure_ascii=False) for each in (str(record["id"]), record[field]))
            file.write(f"{',' if number else ''}\n {id}: {value}")
        file.write("\n}\n")


def _write_jsonl(records: Records, path: Path, columns: AnswerColumns) -> None:
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS) as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _write_json(records: Records, path: Path, columns: AnswerColumns) -> None:
    write_object(records, path, columns.answer)


def _write_txt(records: Records, path: Path, columns: AnswerColumns) -> None:
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS) as file:
        for record in records:
            file.write(" ".join(str(_cell(record, columns.answer, columns)).splitlines()) + "\n")


def _write_csv(records: Records, path: Path, columns: AnswerColumns, *, delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", errors=_HALF_CHARACTERS, newline="") as file:
        writer = csv.writer(_UnixLines(file), delimiter=delimiter, lineterminator="\r\n")
        names = (*columns.columns, *columns.kept)
        writer.writerow([_without_formula(name) for name in names])  # the names of kept columns are another's
        for record in records:
            writer.writerow([_without_formula(_cell(record, name, columns)) for name in names])


def _write_parquet(records: Records, path: Path, columns: AnswerColumns) -> None:
    arrow, parquet = require_parquet(_PARQUET)
    types = _find_types(records, (*columns.columns, *columns.kept))
    texts = arrow.list_(arrow.string())
    schema = arrow.schema(
        [(name, texts if kind == _TEXTS else arrow.type_for_alias(kind)) for name, kind in types.items()]
    )
    rows = ({name: _encodable(record.get(name), kind) for name, kind in types.items()} for record in records)
    with parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(chunk, schema))


def _find_types(records: Records, names: Sequence[str]) -> dict[str, str]:
    """The type of each column; values of different types, and objects, become texts."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for record in records:
        for name, types in found.items():
            if (value := record.get(name)) is not None:
                types.add(_type_of(value))
    return {name: _common_type(types) for name, types in found.items()}


def _type_of(value: object) -> str:
    if isinstance(value, list):
        return _TEXTS if all(isinstance(each, str) for each in value) else "string"
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT_FLOAT:
        return _LARGE if -(2**63) <= value < 2**63 else "string"
    return _ARROW_TYPES.get(type(value), "string")


def _common_type(types: Set[str]) -> str:
    if types and types <= {"int64", _LARGE}:
        return "int64"
    if len(types) == 1:
        return next(iter(types))
    return "float64" if types == {"int64", "float64"} else "string"


def _encodable(value: object, kind: str) -> object:
    """The value of a column of this ``kind``, without half characters."""
    if value is None:
        return None
    if kind == _TEXTS:
        assert isinstance(value, list)
        return [_encodable(each, "string") for each in value]
    return spell_cell(value).encode("utf-8", _HALF_CHARACTERS).decode() if kind == "string" else value


def _cell(record: Mapping[str, object], name: str, columns: AnswerColumns) -> object:
    """The value as one cell; several values of an answer, such as tags, are joined as the task does."""
    value = record.get(name)
    if name in columns.kept or value is None:
        return spell_cell(value)
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
    ".tsv": partial(_write_csv, delimiter="\t"),
    ".jsonl": _write_jsonl,
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".txt": _write_txt,
}

WRITTEN_FORMATS = tuple(_WRITERS)
"""The suffixes of files that predictions can be written to."""
