"""Rows of a table: CSV, TSV, Excel, JSON, Parquet, plain lines, and folders of ``datasets`` or of text files.

Rows are read one at a time and know the line on which they begin, so that every error can name it. A row that does not
fit its table (too short, too long, an unclosed quote) is an error and never a guess.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from bertkit.errors import BertkitError, count_of, data_error, did_you_mean, list_names, usage_error
from bertkit.formats.arrow import (
    Values,
    check_names,
    dataset_names,
    dataset_rows,
    dataset_splits,
    parquet_names,
    parquet_rows,
)
from bertkit.formats.cells import Structure, is_number, spell_cell, to_json
from bertkit.formats.compression import suffix_of
from bertkit.formats.json_records import Record, json_records, list_nested, read_field, refuse_nested_rows
from bertkit.formats.lines import Lines, at_line, at_row
from bertkit.formats.text_folders import COLUMNS, text_rows
from bertkit.formats.workbooks import is_workbook
from bertkit.storage.locations import is_dataset, is_text_folder

_DELIMITERS = ",;\t|"
_JSON = ("json", "jsonl")
_WITHOUT_LINES = ("parquet", "dataset", "folder")
_SAMPLE_LINES = 1000
_SEPARATOR_LINE = re.compile(r'"?sep=."?[,;|\t]*')
_USUAL_NAMES = (
    *("id", "text", "sentence", "sentence1", "sentence2", "premise", "hypothesis", "question", "answer", "context"),
    *("review", "title", "sentence_id", "sentence #", "word", "token", "tag", "label", "class", "category", "topic"),
    *("sentiment", "intent", "score", "rating", "stars"),
)
"""Names of columns, in lower case, that are hardly the cells of two columns in one row of data."""

_MOST_COLUMNS = 10_000
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


def require_text(cell: str, column: str, path: Path, line: int) -> str:
    """The text in a cell; a list or an object is a data error."""
    if isinstance(cell, Structure):
        raise data_error(f'{at_row(path, line)}: "{column}" is {cell[:40]}, not a text.')
    return cell


class Table:
    """A file as named columns. It is opened and its format guessed once; ``rows`` reads it from the first row.

    ``encoding`` is what the user may name; None is UTF-8 in a command without that option. A field in an object of JSON
    can be asked for by name, such as ``labels.score``, but is not listed in ``columns``.
    With ``keeps_rows`` the cells of a complete reading stay in memory and serve later readings of the same columns.
    ``broken`` counts the rows that the last reading left out.
    """

    def __init__(
        self, path: Path, form: Format | None = None, *, encoding: str | None = None, keeps_rows: bool = False
    ) -> None:
        self.path = path
        self.keeps_rows = keeps_rows
        self._lines = Lines(path, encoding)
        self.form = form or _guess_format(path, self._lines)
        self.columns = self.form.names or _read_names(path, self._lines, self.form)
        self.broken = 0
        self._kept: dict[tuple[str, ...], tuple[list[Row], int]] = {}
        if len(self.columns) > _MOST_COLUMNS:
            raise data_error(f"{path} has {len(self.columns):,} columns; {_MOST_COLUMNS:,} are the most.")

    def __contains__(self, column: object) -> bool:
        return column in self.columns or (isinstance(column, str) and "." in column and column in self.nested_columns)

    @cached_property
    def nested_columns(self) -> Sequence[str]:
        """The fields in objects of the first records of JSON, as ``outer.inner``."""
        if self.form.kind not in _JSON:
            return ()
        return list_nested(record for _, record in islice(self._records(self._lines.peek()), _SAMPLE_LINES))

    def require(self, *columns: str) -> None:
        """Raise a usage error, with the names of all columns, if the table does not have one of these."""
        for column in columns:
            if column not in self:
                self.sample(1)  # a title above the names is an error of its own
                known = (*self.columns, *self.nested_columns)
                hint = did_you_mean(column, known)
                raise usage_error(f'{self.path} has no column "{column}". Its columns: {list_names(known)}.{hint}')

    def rows(self, *columns: str) -> Iterator[Row]:
        """The cells of ``columns``, in this order, of every row."""
        if columns in self._kept:
            rows, self.broken = self._kept[columns]
            yield from rows
        elif self.keeps_rows:
            rows = []
            for row in self._read(columns):
                rows.append(row)
                yield row
            self._kept[columns] = rows, self.broken
        else:
            yield from self._read(columns)

    def all_values(self) -> Iterator[Sequence[object]]:
        """Every row with all columns, as JSON can have them: numbers and lists of JSON, Parquet and Arrow stay what
        they are, and all else is text. A field that a JSON object lacks is None.
        """
        if self.form.kind in _JSON:
            yield from ([record.get(name) for name in self.columns] for _, record in self._records(self._lines.read()))
        elif self.form.kind in _WITHOUT_LINES:
            yield from ([to_json(value) for value in values] for values in self._row_values(self.columns))
        else:
            yield from (row.cells for row in self._read(self.columns))

    def sample(self, size: int) -> list[Sequence[str]]:
        """The first ``size`` rows with all columns; a field that a JSON object lacks is empty."""
        if self.form.kind in _JSON:
            records = islice(self._records(self._lines.peek()), size)
            return [[spell_cell(record.get(name)) for name in self.columns] for _, record in records]
        if self.form.kind in _WITHOUT_LINES:
            return [row.cells for row in islice(self._numbered_rows(self.columns), size)]
        return [row.cells for row in islice(self._delimited_rows(self._lines.peek(), self.columns), size)]

    def _read(self, columns: Sequence[str]) -> Iterator[Row]:
        if self.form.kind in _WITHOUT_LINES:
            return self._numbered_rows(columns)
        if self.form.kind in _JSON:
            self.require(*columns)
            return _json_rows(self.path, self._records(self._lines.read()), columns)
        return self._delimited_rows(self._lines.read(), columns)

    def _records(self, lines: Iterator[str]) -> Iterator[tuple[int, Record]]:
        return json_records(self.path, lines, whole=self.form.kind == "json")

    def _row_values(self, columns: Sequence[str]) -> Iterator[Values]:
        if self.form.kind == "folder":
            return text_rows(self.path, columns, self._lines.encoding)
        rows = parquet_rows if self.form.kind == "parquet" else dataset_rows
        return rows(self.path, columns)

    def _numbered_rows(self, columns: Sequence[str]) -> Iterator[Row]:
        self.require(*columns)
        for number, values in enumerate(self._row_values(columns), start=1):
            yield Row(number, [self._spell(number, *each) for each in zip(columns, values, strict=True)])

    def _spell(self, number: int, column: str, value: object) -> str:
        try:
            return spell_cell(value)
        except UnicodeDecodeError as error:
            found = f'{at_row(self.path, number)}: "{column}" is bytes that are no UTF-8'
            raise data_error(f"{found}. Convert the column to text, or leave it out.") from error

    def _delimited_rows(self, lines: Iterator[str], columns: Sequence[str]) -> Iterator[Row]:
        self.require(*columns)
        # Several columns may have no name: where all are asked for, they are taken by their place.
        whole = tuple(columns) == self.columns
        places = list(range(len(columns))) if whole else [self.columns.index(column) for column in columns]
        self.broken = 0
        rows = _line_rows(lines) if self.form.kind == "lines" else _split_rows(self.path, lines, self.form)
        if not self.form.names:
            next(rows, None)
        for row in rows:
            if self.form.skips_broken and len(row.cells) != len(self.columns):
                self.broken += 1
            else:
                self._check(row)
                yield Row(row.line, [row.cells[place] for place in places])

    def _check(self, row: Row) -> None:
        if len(row.cells) != len(self.columns):
            cells, columns = count_of(len(row.cells), "cell"), count_of(len(self.columns), "column")
            raise data_error(
                f"{at_line(self.path, row.line)}: {cells}, but {columns} ({', '.join(self.columns[:12])}). "
                f"{self._advise_on_width(len(row.cells))}"
            )
        if not self.form.names and len(self.columns) > 1 and tuple(row.cells) == self.columns:
            raise data_error(
                f"{at_line(self.path, row.line)}: the line of column names again. Delete it, or add such a line at the "
                "top if the first has values."
            )

    def _advise_on_width(self, cells: int) -> str:
        if is_workbook(self.path):
            return (
                "The first row that is not empty must name every column: delete what is above the names or beside them."
            )
        marks = {",": "comma", ";": "semicolon", "|": "bar"}
        if cells > len(self.columns) and self.form.quotes and self.form.delimiter in marks:
            return f"Put quotes around a cell that contains a {marks[self.form.delimiter]}."
        return "Fix the row."


def _guess_format(path: Path, lines: Lines) -> Format:
    """The format of a file, guessed from its name and its first thousand lines.

    The delimiter is the one that gives every line equally many cells, of several the one that splits the first line
    into the most; in a ``.tsv`` the tab, unless the first line has another delimiter and no tab. In tab-separated
    files quotes are plain characters (as in GLUE), unless every quote in the sample delimits a cell (as a spreadsheet
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
    sample = [line for line in islice(lines.peek(), _SAMPLE_LINES) if line.strip()]
    if not sample:
        raise data_error(f"{path} is empty.")
    if _SEPARATOR_LINE.fullmatch(sample[0].strip()):
        raise data_error(f"{at_line(path, 1)}: {sample[0].strip()} is a line for Excel alone. Delete it.")
    if suffix in (".jsonl", ".ndjson", ".json"):
        begin = sample[0].strip()
        return Format(kind="json" if suffix == ".json" and (begin[0] == "[" or begin == "{") else "jsonl")
    if suffix == ".txt" and "\t" not in sample[0]:
        return Format(kind="lines", names=("text",))
    delimiter = _guess_delimiter(path, sample)
    quotes = delimiter != "\t" or _has_quoted_cells(path, sample)
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
        for row in _split_rows(path, iter(sample), Format(delimiter=delimiter, quotes=quotes)):
            yield row.cells
    except BertkitError:
        return


def _has_quoted_cells(path: Path, sample: Sequence[str]) -> bool:
    """Whether a tab-separated sample can be read as quoted cells, all rows of one width."""
    if not any(line.startswith('"') or '\t"' in line for line in sample):
        return False
    return _has_one_width(path, sample, Format(quotes=True))


def _has_one_width(path: Path, sample: Sequence[str], form: Format) -> bool:
    """Whether all rows of a sample can be read and have equally many cells."""
    try:
        return len({len(row.cells) for row in _split_rows(path, iter(sample), form)}) == 1
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


_INDEX = "index"
"""The first column, where it has values and no name: pandas writes the index of a table so."""


def _read_names(path: Path, lines: Lines, form: Format) -> tuple[str, ...]:
    if form.kind == "parquet":
        return parquet_names(path)
    if form.kind == "dataset":
        return dataset_names(path)
    if form.kind in _JSON:
        records = islice(json_records(path, lines.peek(), whole=form.kind == "json"), _SAMPLE_LINES)
        found = [record for _, record in records]
        if not found:
            raise data_error(f"{path} is empty.")
        if len(found) == 1:
            refuse_nested_rows(path, found[0])
        if not any(found):
            raise data_error(f"{path} has records without fields.")
        return tuple(dict.fromkeys(name for record in found for name in record))
    first, *others = [row.cells for row in islice(_split_rows(path, lines.peek(), form), 2)] or [()]
    if not first:
        raise data_error(f"{path} is empty.")
    names = tuple(cell.strip() for cell in first)
    check_names(path, [name for name in names if name])
    if _INDEX not in names and names[0] == "" and "".join(names) and any(cells[0].strip() for cells in others):
        return (_INDEX, *names[1:])
    return names


def _line_rows(lines: Iterator[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        yield Row(number, [line.rstrip("\r\n")])


def _split_rows(path: Path, lines: Iterator[str], form: Format) -> Iterator[Row]:
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
        return (
            "a carriage return inside the row. Put quotes around the text that holds it; if all lines end in one, as "
            "on an old Macintosh, convert the file: tr '\\r' '\\n' < FILE > NEW."
        )
    return f"{cause}."


def _json_rows(path: Path, records: Iterable[tuple[int, dict[str, object]]], columns: Sequence[str]) -> Iterator[Row]:
    for number, record in records:
        cells = []
        for column in columns:
            try:
                cells.append(spell_cell(read_field(record, column)))
            except KeyError as error:
                advice = did_you_mean(column, record) or " Write null where it has no value."
                raise data_error(f'{at_row(path, number)}: no field "{column}".{advice}') from error
        yield Row(number, cells)
