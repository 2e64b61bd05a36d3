"""Rows of a table: CSV, TSV, Excel, JSON, Parquet, plain lines, and folders of ``datasets`` or of text files.

Rows are read one at a time and know the line on which they begin, so that every error can name it. A row that does not
fit its table (too short, too long, an unclosed quote) is an error and never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from bertkit.errors import count_of, data_error, did_you_mean, list_names, usage_error
from bertkit.formats.arrow import (
    Values,
    check_names,
    dataset_names,
    dataset_rows,
    parquet_names,
    parquet_rows,
)
from bertkit.formats.cells import Structure, spell_cell, to_json
from bertkit.formats.json_records import Record, json_records, list_nested, read_field, refuse_nested_rows
from bertkit.formats.lines import Lines, at_line, at_row
from bertkit.formats.table_formats import SAMPLE_LINES, Format, Row, all_lines, guess_format, line_rows, split_rows
from bertkit.formats.text_folders import text_rows
from bertkit.formats.workbooks import is_workbook

_JSON = ("json", "jsonl")
_KINDS_WITHOUT_LINES = ("parquet", "dataset", "folder")

_MOST_COLUMNS = 10_000


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
        self.form = form or guess_format(path, self._lines)
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
        return list_nested(record for _, record in islice(self._records(self._lines.peek()), SAMPLE_LINES))

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
        elif self.form.kind in _KINDS_WITHOUT_LINES:
            yield from ([to_json(value) for value in values] for values in self._row_values(self.columns))
        else:
            yield from (row.cells for row in self._read(self.columns))

    def sample(self, size: int) -> list[Sequence[str]]:
        """The first ``size`` rows with all columns; a field that a JSON object lacks is empty."""
        if self.form.kind in _JSON:
            records = islice(self._records(self._lines.peek()), size)
            return [[spell_cell(record.get(name)) for name in self.columns] for _, record in records]
        if self.form.kind in _KINDS_WITHOUT_LINES:
            return [row.cells for row in islice(self._numbered_rows(self.columns), size)]
        return [row.cells for row in islice(self._delimited_rows(self._lines.peek(), self.columns), size)]

    def _read(self, columns: Sequence[str]) -> Iterator[Row]:
        if self.form.kind in _KINDS_WITHOUT_LINES:
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
        rows = line_rows(self.path, lines) if self.form.kind == "lines" else split_rows(self.path, lines, self.form)
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


def _read_fields(path: Path, records: Iterator[Record]) -> tuple[str, ...]:
    """The fields of all records: any of them may be the first to have one."""
    found = list(islice(records, 2))
    if not found:
        raise data_error(f"{path} is empty.")
    if len(found) == 1:
        refuse_nested_rows(path, found[0])
    names: dict[str, None] = {}
    for record in chain(found, records):
        if not record.keys() <= names.keys():
            names |= dict.fromkeys(record)
        if len(names) > _MOST_COLUMNS:
            break
    if not names:
        raise data_error(f"{path} has records without fields.")
    return tuple(names)


_INDEX = "index"
"""The first column, where it has values and no name: pandas writes the index of a table so."""


def _read_names(path: Path, lines: Lines, form: Format) -> tuple[str, ...]:
    if form.kind == "parquet":
        return parquet_names(path)
    if form.kind == "dataset":
        return dataset_names(path)
    if form.kind in _JSON:
        return _read_fields(
            path, (record for _, record in json_records(path, all_lines(path, lines), whole=form.kind == "json"))
        )
    first, *others = [row.cells for row in islice(split_rows(path, lines.peek(), form), 2)] or [()]
    if not first:
        raise data_error(f"{path} is empty.")
    names = tuple(cell.strip() for cell in first)
    check_names(path, [name for name in names if name])
    if _INDEX not in names and names[0] == "" and "".join(names) and any(cells[0].strip() for cells in others):
        return (_INDEX, *names[1:])
    return names


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
