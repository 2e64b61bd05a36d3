"""Reads texts and pairs of texts, with a label of any kind, from tables and from lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.errors import count_of, data_error, verb_of
from bertkit.formats.lines import at_row, open_lines
from bertkit.formats.table_formats import Format
from bertkit.formats.tables import Table
from bertkit.storage.suffixes import suffix_of
from bertkit.task_files.columns import guess_columns
from bertkit.task_files.files import Cells, Columns, read_cells
from bertkit.task_types.held_out import IdCount
from bertkit.task_types.reader import Reader

TextLabel = str | float | tuple[str, ...]
"""A class, a number, or the labels that apply."""


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text, or a pair; ``label`` is a class, a number, or several labels, and None where it is not known."""

    id: str
    first: str
    second: str | None = None
    label: TextLabel | None = None


@dataclass(frozen=True, kw_only=True)
class TextReader(Reader[TextExample]):
    """Reads one text per example, or two (``pair``); ``read_label(cell, where)`` reads the cell of a label.

    ``unlabelled`` is the label of all rows of files that have no column of labels.
    """

    pair: bool
    read_label: Callable[[str, str], TextLabel]
    unlabelled: TextLabel | None = None

    def rows(self, split: str) -> Iterator[TextExample]:
        """Every row of the files of a split, with a label or without."""
        for cells in self.files.read(self.name, split):
            yield self._example(cells, split)

    def read(self, path: Path) -> Iterator[TextExample]:
        """New input without labels: a table with the task's columns, or one text (a pair: tab-separated) per line.

        A task without files of its own reads the columns ``text`` and ``pair``.
        """
        for cells in read_cells(*self.open(path)):
            yield TextExample(cells.id, cells.first, cells.second)

    def inspect_input(self, path: Path) -> tuple[int, list[str]]:
        """The number of texts in new input, repeated ids, and texts that are empty."""
        ids, empty = IdCount(), 0
        for example in self.read(path):
            ids.add(example.id)
            empty += _lacks_text(example)
        notes = ids.describe(path.name, (example.id for example in self.read(path)))
        if empty:
            rows = f"{count_of(empty, 'row')} of {path.name} {verb_of(empty, 'has', 'have')}"
            notes.append(f"{rows} an empty text; what is predicted for it says nothing")
        return len(ids), notes

    def read_line(self, name: str, line: str) -> TextExample:
        """One text, or a pair with a tab between its texts."""
        if not self.pair:
            return TextExample(name, line)
        first, tab, second = line.partition("\t")
        if not tab:
            raise data_error(f"line {name}: no tab. Write the first text, a tab and the second text.")
        return TextExample(name, first, second)

    def columns_of(self, path: Path) -> Columns:
        """The columns, guessed as for a user's table."""
        return guess_columns(Table(path, encoding=self.files.encoding), text=None, pair=None, label=None)

    def describe_rows(self, split: str, labelled: Sequence[TextExample]) -> list[str]:
        """Broken rows, empty texts, and a single class."""
        notes = []
        if broken := sum(table.broken for table in self.files.tables(self.name, split)):
            notes.append(f"{count_of(broken, 'broken row')} of {split} {verb_of(broken, 'is', 'are')} left out")
        if empty := sum(_lacks_text(example) for example in labelled):
            kept = f"{verb_of(empty, 'has', 'have')} an empty text, and {verb_of(empty, 'is', 'are')} kept"
            notes.append(f"{count_of(empty, 'example')} of {split} {kept}")
        labels = {example.label for example in labelled}
        if len(labels) == 1 and isinstance(label := labels.pop(), str):
            notes.append(f'every example of {split} has the label "{label}": there is nothing to learn')
        return notes

    def _example(self, cells: Cells, split: str) -> TextExample:
        label = self.unlabelled if cells.label is None else None
        if cells.label is not None and (cells.label or not self.files.splits[split].may_lack_labels):
            label = self.read_label(cells.label, at_row(cells.path, cells.line))
        return TextExample(cells.id, cells.first, cells.second, label)

    def open_table(self, path: Path) -> tuple[Table, Columns] | None:
        """The table and its columns; None for a ``.txt`` of lines, which has no columns."""
        return None if self.reads_lines(path) else self.open(path)

    def reads_lines(self, path: Path) -> bool:
        """Whether a ``.txt`` has a text in each line; it is a table if its first line has tabs and names the texts."""
        if suffix_of(path) != ".txt":
            return False
        with open_lines(path, self.files.encoding) as lines:
            names = next(lines, "").strip().split("\t")
        return len(names) == 1 or all(split.columns.first not in names for split in self.files.splits.values())

    def open(self, path: Path) -> tuple[Table, Columns]:
        """New input and the columns of its texts; quotes in a ``.tsv`` are read as in the task's own files."""
        encoding = self.files.encoding
        if self.reads_lines(path):
            pairs = Format(names=("first", "second"), blanks=True)  # an answer for each line
            form = pairs if self.pair else Format(kind="lines", names=("first",))
            return Table(path, form, encoding=encoding), Columns(first="first", second="second" if self.pair else None)
        keeps_quotes = any(split.form and not split.form.quotes for split in self.files.splits.values())
        table = Table(path, encoding=encoding)
        if suffix_of(path) == ".tsv" and keeps_quotes:
            table = Table(path, replace(table.form, quotes=False), encoding=encoding)
        return table, self._columns_in(table)

    def _columns_in(self, table: Table) -> Columns:
        """The columns of the first split whose texts the table has; else those of train, for the error."""
        known = [split.columns.without_labels() for split in self.files.splits.values()]
        for columns in known:
            present = replace(columns, id=columns.id if columns.id in table else None)
            if all(name in table for name in present.used()):
                return present
        return known[0] if known else Columns(first="text", second="pair" if self.pair else None)


def _lacks_text(example: TextExample) -> bool:
    return not example.first.strip() or (example.second is not None and not example.second.strip())
