"""Tables in memory, of pandas and of Hugging Face ``datasets``, as JSON Lines that ``Table`` reads.

Neither library is imported: a table is known by its methods. Classes that ``datasets`` stores as numbers are written
by their names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from bertkit.errors import BertkitError, list_names, usage_error
from bertkit.formats.arrow import build_converter
from bertkit.formats.cells import find_repeated, to_json
from bertkit.storage.atomic import make_folder, write_file

_ROWS_AT_ONCE = 4096
_EXACT = 2.0**53
"""Smaller whole numbers are exact as floats."""

_DIGITS = 15
"""Digits after the point that a float64 of a DataFrame keeps; pandas writes 10 of itself."""


TEMPORARY = "bertkit-table-"
"""The beginning of the name of a folder that is deleted with the tables in it when the work on them ends."""


@contextmanager
def errors_about(path: Path, name: str) -> Iterator[None]:
    """Errors about the temporary file ``path`` speak of ``name``, which the user gave in its place."""
    try:
        yield
    except BertkitError as error:
        if str(path) not in str(error):
            raise
        raise BertkitError(str(error).replace(str(path), name), exit_code=error.exit_code) from error


def describe_table(path: Path) -> str:
    """The table at ``path`` for a report: its path, or the hash of one in memory, whose file is deleted by then."""
    digest = _digest_in_name(path)
    return f"a table in memory ({digest})" if digest else str(path)


def name_table(path: Path) -> str:
    """The name of a task with the examples of a table: of its file, or of the hash of one in memory."""
    digest = _digest_in_name(path)
    return f"table:{digest}" if digest else f"files:{path.name}"


def _digest_in_name(path: Path) -> str:
    """The hash of a table in memory, from the name of its file; empty for a file of the user."""
    return path.stem.rpartition("-")[2] if path.parent.name.startswith(TEMPORARY) else ""


def is_memory_table(value: object) -> bool:
    """Whether this is a pandas DataFrame, or a Dataset or DatasetDict of ``datasets``."""
    return _is_frame(value) or _is_dataset(value) or bool(_splits(value))


def require_one_table(table: object, name: str) -> None:
    """Raise a usage error for a DatasetDict, where ``name`` is one table."""
    if splits := _splits(table):
        raise usage_error(f"{name} is a DatasetDict with {list_names(list(splits))}: give one of them.")


def write_memory_table(table: object, folder: Path, name: str) -> Path:
    """Write a table into ``folder`` and return the path: NAME-HASH.jsonl, or a folder of such files for a DatasetDict.

    The hash is that of the content, so that the same table has the same path again, and another table never replaces
    it. A table without rows is a usage error.
    """
    splits = _splits(table)
    if not splits:
        path = folder / f"{name}-{_digest({'': table})}.jsonl"
        _write_lines(table, path, name)
        return path
    path = folder / f"{name}-{_digest(splits)}"
    for split, rows in splits.items():
        _write_lines(rows, path / f"{split}.jsonl", f"{split} of {name}")
    return path


def _is_frame(value: object) -> bool:
    return hasattr(value, "iloc") and hasattr(value, "columns")


def _is_dataset(value: object) -> bool:
    return hasattr(value, "features") and hasattr(value, "with_format")


def _splits(value: object) -> Mapping[str, object]:
    """The Datasets of a DatasetDict by their names; else nothing."""
    is_dict = isinstance(value, Mapping) and bool(value) and all(map(_is_dataset, value.values()))
    return cast("Mapping[str, object]", value) if is_dict else {}


def _digest(tables: Mapping[str, object]) -> str:
    """The beginning of the hash of the tables and their names."""
    digest = hashlib.sha256()
    for name, table in tables.items():
        digest.update(name.encode())  # so that a row that moves to another split changes the hash
        for lines in _lines(table):
            digest.update(lines.encode())
    return digest.hexdigest()[:8]


def _write_lines(table: object, path: Path, name: str) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(_lines(table))
            if not file.tell():
                raise usage_error(f"{name} is a table without rows.")

    make_folder(path.parent)
    if not path.exists():
        write_file(path, write)


def _lines(table: object) -> Iterator[str]:
    return _lines_of_frame(table) if _is_frame(table) else _lines_of_dataset(table)


def _lines_of_frame(frame: Any) -> Iterator[str]:
    names = list(map(str, frame.columns))
    if (repeated := find_repeated(names)) is not None:
        raise usage_error(f'the DataFrame has more than one column "{repeated}". Rename all but one.')
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise usage_error("the DataFrame has columns of several levels. Give each column one name.")
    frame = _with_whole_numbers(frame)
    for start in range(0, len(frame), _ROWS_AT_ONCE):
        rows = _plain_cells(frame.iloc[start : start + _ROWS_AT_ONCE])
        try:
            text = rows.to_json(orient="records", lines=True, double_precision=_DIGITS, date_format="iso")
        except ValueError as error:
            raise usage_error(f"the DataFrame cannot be read: {error}") from error
        yield text if text.endswith("\n") else text + "\n"


def _with_whole_numbers(frame: Any) -> Any:
    """The frame with whole numbers where pandas has floats because some are or were missing: a class is 1, not 1.0."""
    whole = {}
    for name in frame.select_dtypes("float"):
        known = frame[name].dropna().to_numpy("float64")
        if (np.abs(known) < _EXACT).all() and (known == np.trunc(known)).all():
            whole[name] = "Int64"
    return frame.astype(whole) if whole else frame


def _plain_cells(rows: Any) -> Any:
    """The rows with cells that JSON can have. Infinity becomes a text, which is refused where a number is asked for;
    pandas would make it a missing one, also inside a list."""
    rows = rows.copy()
    for name in rows.select_dtypes("number"):
        is_infinite = np.isinf(rows[name].to_numpy("float64", na_value=np.nan))
        if is_infinite.any():
            cells = zip(rows[name], is_infinite, strict=True)
            rows[name] = [str(cell) if infinite else cell for cell, infinite in cells]
    for name in rows:
        if rows[name].dtype.kind == "O":  # also periods and intervals, which are types of pandas itself
            cells = zip(rows[name], rows[name].isna(), strict=True)
            rows[name] = [None if is_missing else to_json(cell) for cell, is_missing in cells]
    return rows


def _lines_of_dataset(dataset: Any) -> Iterator[str]:
    features = dataset.features.to_dict()
    converters = {name: build_converter(feature, "the Dataset") for name, feature in features.items()}
    for row in dataset.with_format(None):
        yield json.dumps({name: to_json(converters[name](value)) for name, value in row.items()}) + "\n"
