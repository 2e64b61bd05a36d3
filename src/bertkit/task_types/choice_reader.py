"""Reads prompts with several choices: tables and lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.errors import count_of, data_error, usage_error
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table
from bertkit.task_files.choice_columns import (
    ChoiceCells,
    Spelling,
    find_choices,
    find_columns,
    find_text_columns,
    read_choice_cells,
    read_place,
)
from bertkit.task_files.files import Columns
from bertkit.task_types.reader import Reader


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A prompt with its choices, each of which continues ``stem``.

    ``label`` is the index of the right choice, from 0; None if not known. ``keys`` name the choices where the row of
    the file has names of its own.
    """

    id: str
    prompt: str
    choices: tuple[str, ...]
    stem: str = ""
    label: int | None = None
    keys: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """The text that all choices share."""
        return self.prompt

    @property
    def second(self) -> str:
        """The stem and all choices, as one text."""
        return "\0".join((self.stem, *self.choices))


@dataclass(frozen=True, kw_only=True)
class ChoiceReader(Reader[ChoiceExample]):
    """Reads tables of prompts and choices; ``choices`` and ``spelling`` are those of MultipleChoiceTask."""

    choices: tuple[str, ...]
    spelling: Spelling

    def rows(self, split: str) -> Iterator[ChoiceExample]:
        """Every row of the files of a split, with a label or without."""
        for table in self.files.tables(self.name, split):
            where = self.files.splits[split]
            for cells in read_choice_cells(table, where.columns, self._choices_in(table)):
                yield self._example(cells, may_lack_label=where.may_lack_labels)

    def read(self, path: Path) -> Iterator[ChoiceExample]:
        """New input without labels: a table with the task's columns."""
        table, columns = self.open_table(path)
        for cells in read_choice_cells(table, columns, self._choices_in(table)):
            yield self._example(cells)

    def open_table(self, path: Path) -> tuple[Table, Columns]:
        """The table and its columns."""
        table = Table(path, encoding=self.files.encoding)
        return table, self._columns_in(table)

    def read_line(self, name: str, line: str) -> ChoiceExample:
        """A prompt and its choices, with tabs between them."""
        prompt, *choices = line.split("\t")
        return make_example(name, prompt, choices, where=f"line {name}")

    def columns_of(self, path: Path) -> Columns:
        """The columns of the prompt and the label, found by their names."""
        table = Table(path, encoding=self.files.encoding)
        return find_columns(table, self._choices_in(table))

    def _columns_in(self, table: Table) -> Columns:
        """The columns of train without the label, and without the id if the table has none."""
        splits = list(self.files.splits.values())
        columns = splits[0].columns.without_labels() if splits else find_text_columns(table, self._choices_in(table))
        return columns if columns.id in table else replace(columns, id=None)

    def _choices_in(self, table: Table) -> tuple[str, ...]:
        found = self.choices or find_choices(table.columns)
        if not found:
            raise usage_error(f"{table.path} has no columns of choices, such as choice0, choice1 or A, B.")
        return found

    def _example(self, cells: ChoiceCells, *, may_lack_label: bool = False) -> ChoiceExample:
        where = at_row(cells.path, cells.line)
        example = make_example(cells.id, cells.prompt, cells.choices, stem=cells.stem, where=where)
        example = replace(example, keys=cells.keys)
        if cells.label is None or (not cells.label and may_lack_label):
            return example
        return replace(example, label=read_place(cells.label, cells.choices, self.spelling, where))


def make_example(id: str, prompt: str, choices: Sequence[str], *, where: str, stem: str = "") -> ChoiceExample:
    """An example without a label; fewer than two choices, or an empty one, are an error at ``where``."""
    if len(choices) < 2:
        raise data_error(f"{where}: {count_of(len(choices), 'choice')}; there must be at least two to choose from.")
    for number, choice in enumerate(choices):
        if not choice.strip():
            raise data_error(f"{where}: choice {number} of 0 to {len(choices) - 1} is empty. Give it a text.")
    return ChoiceExample(id, prompt, tuple(choices), stem)
