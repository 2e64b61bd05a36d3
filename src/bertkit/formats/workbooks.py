"""Excel workbooks (.xlsx), read as the lines of the CSV file that a spreadsheet would save."""

from __future__ import annotations

import csv
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, data_error
from bertkit.formats.compression import check_unpacked
from bertkit.optional import load, require

_FIRST_ROWS = 100
"""A sheet with nothing in so many rows is empty."""

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError, SyntaxError, ValueError, LookupError, TypeError),
    RuntimeError,
)
"""What openpyxl and zipfile raise for a file that is no workbook, or a damaged one: XML that cannot be parsed is a
SyntaxError, and a part that seems to be encrypted or compressed in another way a RuntimeError."""


def is_workbook(path: Path) -> bool:
    """Whether the name of a file is that of a workbook."""
    return path.suffix.lower() == ".xlsx"


def workbook_lines(path: Path) -> Iterator[str]:
    """The rows of the only sheet that has any, one line of CSV each; formulas as the results that the file stores.

    More than one such sheet, and a file that is no workbook, are data errors. Hidden sheets are not read.
    """
    openpyxl = require("openpyxl", extra="excel", purpose=str(path))
    try:
        with zipfile.ZipFile(path) as parts:
            check_unpacked(path, sum(part.file_size for part in parts.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            yield from _lines(_find_sheet(path, book))
        finally:
            book.close()
    except FileNotFoundError as error:
        raise data_error(f"{path} does not exist.") from error
    except BertkitError:
        raise
    except _DAMAGE as error:
        with path.open("rb") as file:
            begin = file.read(1000)
        if b"\0" not in begin and not begin.startswith(b"PK"):
            raise data_error(f"{path} is no workbook. If it is CSV, let its name end in .csv.") from error
        advice = "It may be cut off. Save it again, or as CSV in UTF-8."
        raise data_error(f"{path} is not a readable workbook ({error}). {advice}") from error


def _find_sheet(path: Path, book: Any) -> Any:
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # many programs write a wrong size, which openpyxl would cut the rows to
    visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    sheets = [each for each in visible if any(map(_has_values, islice(each.iter_rows(values_only=True), _FIRST_ROWS)))]
    if not sheets:
        raise data_error(f"{path} is empty.")
    if len(sheets) > 1:
        names = ", ".join(f'"{sheet.title}"' for sheet in sheets[:10])
        raise data_error(f"{path} has {len(sheets)} sheets with data: {names}. Keep one of them, or save it as CSV.")
    return sheets[0]


def _lines(sheet: Any) -> Iterator[str]:
    """The rows as CSV; all are as wide as the first unless they have more, so that empty cells at the end are kept."""
    width, unescape = 0, load("openpyxl.utils.escape").unescape
    for row in sheet.iter_rows(values_only=True):
        cells = [_cell(value, unescape) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        width = width or len(cells)
        cells += [""] * (width - len(cells)) if cells else []
        line = io.StringIO(newline="")
        csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
        yield line.getvalue()


def _has_values(row: Sequence[object]) -> bool:
    return any(value is not None for value in row)


def _cell(value: object, unescape: Callable[[str], str]) -> str:
    """A cell as a spreadsheet writes it into a CSV file; ``unescape`` makes a carriage return of ``_x000D_``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()  # a day, which Excel counts as its first moment
    return unescape(value) if isinstance(value, str) else str(value)
