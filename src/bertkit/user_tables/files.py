"""The files of a task as a user named them, and what the user said about their columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import list_names, usage_error
from bertkit.formats.encodings import UTF_8
from bertkit.formats.table_formats import Format
from bertkit.formats.tables import Table
from bertkit.options.finetuning import LabelKind
from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_files.indicators import UNKNOWN
from bertkit.task_types.base import FileTask

_HELDOUT = 0.1
"""The share of the training examples that are held out where there is no dev file."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A task made from files, and a ``sentence`` that says how the files were understood.

    Tables of texts and of choices stay open in the task, so that they are not read a second time.
    """

    task: FileTask
    sentence: str


class Given(NamedTuple):
    """What the user said about a table: names of columns, and what the label is. None is guessed."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    kind: LabelKind | None = None


@dataclass(frozen=True, kw_only=True)
class UserFiles:
    """The files of each split, and the name of their task. ``encoding`` is that of tables of texts and choices."""

    name: str
    paths: Mapping[str, Sequence[Path]]
    encoding: str
    max_length: int

    @property
    def first(self) -> Path:
        """The first file of train, from which everything is guessed."""
        return self.paths["train"][0]

    @property
    def heldout(self) -> float:
        """The share of the training examples that are held out."""
        return 0.0 if "dev" in self.paths else _HELDOUT

    @cached_property
    def opened(self) -> TaskFiles:
        """The tables, which are opened once."""
        return TaskFiles(encoding=self.encoding)

    @property
    def table(self) -> Table:
        """The opened table of the first file of train."""
        return self.opened.table(self.first)

    def read_with(self, columns: Columns) -> TaskFiles:
        """The files of a format that has these columns, and is UTF-8.

        Another encoding is a usage error.
        """
        if self.encoding != UTF_8:
            raise usage_error(
                f"--encoding is for tables of texts; {self.first} has questions or tags. Convert it: "
                f"iconv -f {self.encoding} -t UTF-8"
            )
        return TaskFiles(splits={split: split_of(files, columns) for split, files in self.paths.items()})

    def read_tables_with(self, columns: Columns) -> TaskFiles:
        """The opened tables with these columns; test files need no label column, and no file needs ids."""
        splits: dict[str, Split] = {}
        for split, files in self.paths.items():
            found = columns
            own = [self.opened.table(file) for file in files]
            if split == "test" and not _has_labels(own, columns):
                found = found.without_labels()
            if any(found.id not in table for table in own):
                found = replace(found, id=None)
            splits[split] = replace(split_of(files, found), may_lack_labels=True)
        return self.read_tables(splits)

    def read_tables(self, splits: Mapping[str, Split]) -> TaskFiles:
        """The opened tables as these splits, so that none is read a second time."""
        made = replace(self.opened, splits=splits)
        made.adopt({file.resolve(): self.opened.table(file) for files in self.paths.values() for file in files})
        return made


def split_of(files: Sequence[Path], columns: Columns) -> Split:
    """A split of these files, whatever the working directory will be when they are read."""
    return Split(files=tuple(str(file.resolve()) for file in files), columns=columns)


def _has_labels(tables: Sequence[Table], columns: Columns) -> bool:
    """Whether a test split has labels: a test set with secret answers has no such column, or -1 in every row.

    A table without the columns of labels that another one has is a usage error.
    """
    if not any(name in table for table in tables for name in columns.answers):
        return False
    rows = (row for table in tables for row in table.rows(*columns.answers))
    return any(cell.strip() not in UNKNOWN for row in rows for cell in row.cells)


def check_rows(task: FileTask, splits: Iterable[str]) -> None:
    """Read every row, so that a wrong one is an error before anything is trained."""
    for split in splits:
        for _ in task.reader.rows(split):
            pass


def describe_columns(columns: Columns, label: str) -> str:
    """The columns of texts, what the ``label`` is, and the column of ids."""
    named = {"text": columns.first, "pair": columns.second, "label": label, "id": columns.id}
    return ", ".join(f"{what} = {name}" for what, name in named.items() if name)


def describe_file(table: Table, used: Collection[str]) -> str:
    """The end of a sentence: what is unusual about the form of a file, and its columns that are not ``used``."""
    outer = {name.partition(".")[0] for name in used}  # the objects of which a field is used
    # pandas writes its index without a name.
    others = [
        name or f"column {place} without a name"
        for place, name in enumerate(table.columns, start=1)
        if name not in outer.union(used) and (name or place > 1)
    ]
    unread = f"; not read: {list_names(others)}" if others else ""
    return f"{_describe_form(table.form)}{unread}"


def _describe_form(form: Format) -> str:
    if form.kind != "delimited":
        return ""
    marks = {";": "; cells are separated by semicolons", "|": "; cells are separated by bars"}
    nameless = "; there is no line of column names, so the columns are numbered" if form.names else ""
    return marks.get(form.delimiter, "") + nameless
