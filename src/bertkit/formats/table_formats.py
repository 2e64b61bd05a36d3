"""How a table is split into cells: its format, which is named or guessed, and the rows of a delimited one."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.formats.arrow import dataset_splits
from bertkit.formats.cells import is_number
from bertkit.formats.lines import Lines, at_line
from bertkit.formats.text_folders import COLUMNS
from bertkit.formats.workbooks import is_workbook
from bertkit.storage.locations import is_dataset, is_text_folder
from bertkit.storage.suffixes import JSON, suffix_of

_DELIMITERS = ",;\t|"
SAMPLE_LINES = 1000
"""Lines at the beginning of a file, from which its format is guessed."""

_SEPARATOR_LINE = re.compile(r'"?sep=."?[,;|\t]*')
_USUAL_NAMES = (
    *("id", "text", "sentence", "sentence1", "sentence2", "premise", "hypothesis", "question", "answer", "context"),
    *("review", "title", "sentence_id", "sentence #", "word", "token", "tag", "label", "class", "category", "topic"),
    *("sentiment", "intent", "score", "rating", "stars"),
)
"""Names of columns, in lower case, that are hardly the cells of two columns in one row of data."""

_CONVERT_RETURNS = "if all lines end in one, as on an old Macintosh, convert the file: tr '\\r' '\\n' < FILE > NEW."

_LONGEST_FIELD = 1_000_000
"""Characters. An unclosed quote swallows this many at most before it is reported."""


class Row(NamedTuple):
    """``line`` counts from 1 and includes the line of column names; in JSON lists, Parquet and Arrow it counts rows."""

    line: int
    cells: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a file is split into cells.

    ``names`` are the columns of a file that does not name them itself. ``skips_broken`` leaves out, and counts, rows of
    the wrong width; it is for published files that are known to have some. With ``spaces`` those after a delimiter do
    not belong to the cell. With ``blanks`` a blank line is a row, of one empty cell, and not left out.
    """

    kind: Literal["delimited", "jsonl", "json", "parquet", "dataset", "folder", "lines"] = "delimited"
    delimiter: str = "\t"
    quotes: bool = False
    names: tuple[str, ...] = ()
    skips_broken: bool = False
    spaces: bool = False
    blanks: bool = False


def guess_format(path: Path, lines: Lines) -> Format:
    """The format of a file, guessed from its name and its first thousand lines.

    The delimiter is the one that gives every line equally many cells, of several the one that splits the first line
    into the most; in a ``.tsv`` the tab, unless the first line has another delimiter and no tab. In tab-separated
    files quotes are plain characters (as in GLUE), unless every quote of the file delimits a cell (as a spreadsheet
    writes them). A first line that holds a number, or a cell that recurs further down, is data and not names, unless
    two others are usual names: the columns are then called 1, 2, 3.
    """
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return Format(kind="parquet")
    if is_dataset(path):
        return Format(kind="dataset")
    if is_text_folder(path):
        return Format(kind="folder", names=COLUMNS)
    if splits := dataset_splits(path):
        raise usage_error(f"{path} holds several splits. Name one of them: {', '.join(splits)}.")
    sample = [line for line in islice(lines.peek(), SAMPLE_LINES) if line.strip()]
    if not sample:
        raise data_error(f"{path} is empty.")
    if _SEPARATOR_LINE.fullmatch(sample[0].strip()):
        raise data_error(f"{at_line(path, 1)}: {sample[0].strip()} is a line for Excel alone. Delete it.")
    if suffix in JSON:
        begin = sample[0].strip()
        return Format(kind="json" if suffix == ".json" and (begin[0] == "[" or begin == "{") else "jsonl")
    if suffix == ".txt" and "\t" not in sample[0]:
        return Format(kind="lines", names=("text",))
    delimiter = _guess_delimiter(path, sample)
    quotes = delimiter != "\t" or _has_quoted_cells(path, lines)
    spaces = quotes and any(f'{delimiter} "' in line for line in sample)
    spaces = spaces and _has_one_width(path, sample, Format(delimiter=delimiter, quotes=True, spaces=True))
    first, *others = [*_readable_rows(path, sample, delimiter, quotes=quotes)] or [()]
    return Format(delimiter=delimiter, quotes=quotes, spaces=spaces, names=_number_nameless(first, others))


def _guess_delimiter(path: Path, sample: Sequence[str]) -> str:
    if is_workbook(path):
        return ","
    if suffix_of(path) == ".tsv" and ("\t" in sample[0] or not any(each in sample[0] for each in _DELIMITERS)):
        return "\t"

    def rank(delimiter: str) -> tuple[bool, int]:
        first, *others = [len(cells) for cells in _readable_rows(path, sample, delimiter, quotes=True)] or [0]
        return first > 1 and {first}.issuperset(others), first

    return max(_DELIMITERS, key=rank)


def _readable_rows(path: Path, sample: Sequence[str], delimiter: str, *, quotes: bool) -> Iterator[Sequence[str]]:
    """The rows of a sample up to the first that cannot be read; that one is an error when the table is read."""
    try:
        for row in split_rows(path, iter(sample), Format(delimiter=delimiter, quotes=quotes)):
            yield row.cells
    except BertkitError:
        return


def _has_quoted_cells(path: Path, lines: Lines) -> bool:
    """Whether tab-separated lines can be read as quoted cells, all rows of one width.

    Each line by itself, that is: a quote that is closed in a later line is one of the text, if without quotes all lines
    have one width. All lines are looked at, as the first that has a quote may be any.
    """
    quoted = Format(quotes=True)
    found = False
    for line in all_lines(path, lines):
        if line.startswith('"') or '\t"' in line:
            found = True
            if not _has_one_width(path, [line], quoted):
                return not _has_one_width(path, all_lines(path, lines), Format()) and _has_one_width(
                    path, all_lines(path, lines), quoted
                )
    return found and _has_one_width(path, all_lines(path, lines), quoted)


def all_lines(path: Path, lines: Lines) -> Iterator[str]:
    """All lines of a file; of a pipe, which can be read once only, the first."""
    return lines.read() if path.is_file() else islice(lines.peek(), SAMPLE_LINES)


def _has_one_width(path: Path, lines: Iterable[str], form: Format) -> bool:
    """Whether all rows can be read and have equally many cells."""
    try:
        return len({len(row.cells) for row in split_rows(path, iter(lines), form)}) == 1
    except BertkitError:
        return False


def _number_nameless(first: Sequence[str], others: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """``("1", "2", ...)`` if the first row looks like data; () if it looks like names, or recurs as a whole."""
    columns = [set(cells) for cells in zip(*others, strict=False)]
    # A cell without a name is that of an empty column, as spreadsheets write them at the end of a row.
    names = [
        (cell.strip().casefold(), cell in cells) for cell, cells in zip(first, columns, strict=False) if cell.strip()
    ]
    recurs = [recurring for _, recurring in names]
    # Two usual names outweigh a third that recurs, or is a number: in a table of words POS is both a column and a part
    # of speech, and a column of figures may be called 2019.
    usual = sum(name in _USUAL_NAMES and not recurring for name, recurring in names)
    filled = [cell.strip() for cell in first if cell.strip()]
    if len(filled) > 1 and filled == [str(place) for place in range(len(filled))]:
        return ()  # pandas writes 0, 1 and so on over columns that have no names
    is_data = usual < 2 and (any(map(is_number, first)) or (any(recurs) and not all(recurs)))
    return tuple(str(place + 1) for place in range(len(first))) if is_data else ()


def line_rows(path: Path, lines: Iterator[str]) -> Iterator[Row]:
    """Rows of a file of lines, which have one cell each."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if number == 1 and "\r" in text and not line.endswith("\n"):
            raise data_error(f"{path}: one line with carriage returns in it; {_CONVERT_RETURNS}")
        yield Row(number, [text])


def split_rows(path: Path, lines: Iterator[str], form: Format) -> Iterator[Row]:
    """Rows of a delimited file."""
    if not form.quotes:
        for number, line in enumerate(lines, 1):
            if form.blanks or line.strip("\r\n"):
                yield Row(number, line.rstrip("\r\n").split(form.delimiter))
        return
    csv.field_size_limit(max(_LONGEST_FIELD, csv.field_size_limit()))  # the program that uses bertkit may need more
    reader = csv.reader(lines, delimiter=form.delimiter, skipinitialspace=form.spaces, strict=True)
    begin = 1
    try:
        for cells in reader:
            if cells:
                yield Row(begin, cells)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise data_error(f"{at_line(path, begin)}: {_explain(error, begin == reader.line_num)}") from error


def _explain(error: csv.Error, in_one_line: bool) -> str:
    cause = str(error)
    if "field larger" in cause and in_one_line:
        return f"a cell of more than {csv.field_size_limit():,} characters. Cut it, or write the table as .jsonl."
    if "unexpected end of data" in cause or "field larger" in cause:
        return "a quote is opened here and never closed. Close it, or double it if it belongs to the text."
    if "expected after" in cause:
        return "text follows a closing quote. Double the quotes that belong to the text."
    if "new-line character" in cause:
        return f"a carriage return inside the row. Put quotes around the text that holds it; {_CONVERT_RETURNS}"
    return f"{cause}."
