"""Where the examples of a task are: which files, which columns, and the cells in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.formats.encodings import UTF_8
from bertkit.formats.lines import at_row
from bertkit.formats.table_formats import Format
from bertkit.formats.tables import Table, require_text
from bertkit.storage.checksums import sha256_of, size_of
from bertkit.storage.suffixes import suffix_of
from bertkit.task_files.indicators import join_indicators


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of the text or the two texts, of the label and of the id of an example.

    Several labels are in ``label``, or in a column of 0 and 1 for each, ``labels``.
    """

    first: str
    second: str | None = None
    label: str | None = None
    id: str | None = None
    labels: tuple[str, ...] = ()

    def used(self) -> list[str]:
        """The names of the columns that are set."""
        named = (self.first, self.second, *self.answers, self.id)
        return [column for column in named if column is not None]

    @property
    def answers(self) -> tuple[str, ...]:
        """The columns of the labels: one, several with an indicator each, or none."""
        return self.labels if self.label is None else (self.label,)

    def with_labels(self, *columns: str) -> Columns:
        """The same columns with these for the labels."""
        one = columns[0] if len(columns) == 1 else None
        return replace(self, label=one, labels=columns if len(columns) > 1 else ())

    def without_labels(self) -> Columns:
        """The same columns of a file that has no labels."""
        return self.with_labels()


@dataclass(frozen=True, kw_only=True)
class Split:
    """The files of one split and how to read them; with ``form`` None the format of each file is guessed.

    With ``may_lack_labels`` an empty label cell is an example without a label, and not an error.
    """

    files: tuple[str, ...]
    columns: Columns
    form: Format | None = None
    may_lack_labels: bool = False


class Cells(NamedTuple):
    """The cells of one row, and where the row is, for error messages."""

    path: Path
    line: int
    first: str
    second: str | None
    label: str | None
    id: str


@dataclass(frozen=True, kw_only=True)
class TaskFiles:
    """The splits of a task, and the folder that their file names are relative to.

    ``home`` is the folder below ``BERTKIT_DATA`` that is used when ``folder`` is not given; a task without a home has
    absolute file names. ``encoding`` is that of its tables, None for UTF-8 in a command that cannot name it. A table is
    opened when it is first needed, and read once: ``table`` returns the opened one until ``close``.
    """

    splits: Mapping[str, Split] = field(default_factory=dict)
    home: str = ""
    folder: Path | None = None
    encoding: str | None = UTF_8

    @cached_property
    def _opened(self) -> dict[tuple[Path, Format | None], Table]:
        return {}

    def table(self, path: Path, form: Format | None = None) -> Table:
        """The table in a file, which keeps its rows for a second reading."""
        if (path, form) not in self._opened:
            self._opened[path, form] = Table(path, form, encoding=self.encoding, keeps_rows=True)
        return self._opened[path, form]

    def adopt(self, tables: Mapping[Path, Table]) -> None:
        """Take over tables that were opened before it was known what their columns are."""
        self._opened.update({(path, None): table for path, table in tables.items()})

    def close(self) -> None:
        """Release the opened tables; they are opened again when they are needed again."""
        self._opened.clear()

    def replaced(self, name: str, files: tuple[str, ...]) -> TaskFiles:
        """The same splits with other files for one, read by its columns (or those of train, if the split is new).

        Further splits of that name (``dev_mismatched`` beside ``dev``) are removed. The format of the split is kept
        only for files with the same suffixes as the split's own.
        """
        split = self.splits.get(name) or self.splits.get("train") or next(iter(self.splits.values()))
        same_kind = {suffix_of(Path(file)) for file in files} == {suffix_of(Path(file)) for file in split.files}
        absolute = tuple(str(Path(file).resolve()) for file in files)
        changed = replace(split, files=absolute, form=split.form if same_kind else None)
        kept = {other: each for other, each in self.splits.items() if not other.startswith(f"{name}_")}
        return replace(self, splits={**kept, name: changed})

    def missing(self, task: str, split: str) -> list[Path]:
        """The files of a split that do not exist."""
        return [path for file in self._split(task, split).files if not (path := self._path(task, file)).exists()]

    def fingerprints(self, task: str, split: str) -> list[dict[str, str | int]]:
        """``file``, ``bytes`` and ``sha256`` of each file or folder of a split; missing ones are left out."""
        paths = [path for file in self._split(task, split).files if (path := self._path(task, file)).exists()]
        return [{"file": path.name, "bytes": size_of(path), "sha256": sha256_of(path)} for path in paths]

    def read(self, task: str, split: str) -> Iterator[Cells]:
        """The rows of a split, file by file."""
        for table in self.tables(task, split):
            yield from read_cells(table, self.splits[split].columns)

    def tables(self, task: str, split: str) -> list[Table]:
        """The opened tables of a split."""
        return [self.table(path, self.splits[split].form) for path in self.paths(task, split)]

    def paths(self, task: str, split: str) -> list[Path]:
        """The files of a split; one that is missing from the folder of the task is an error."""
        return [self._find(task, file) for file in self._split(task, split).files]

    def _split(self, task: str, split: str) -> Split:
        if not self.splits:
            raise usage_error(f"{task} has no files of its own. Name a file with labels.")
        check_split(task, split, self.splits)
        return self.splits[split]

    def _path(self, task: str, file: str) -> Path:
        if Path(file).is_absolute() or not self.home:
            return Path(file)
        return Path(self.folder or self._folder_by_environment(task)) / file

    def _find(self, task: str, file: str) -> Path:
        path = self._path(task, file)
        if path.exists() or Path(file).is_absolute() or not self.home:
            return path
        folder = path.parent
        nested = folder / Path(self.home).name / file
        hint = f" Did you mean {nested.parent}?" if nested.exists() else ""
        expected = ", ".join(sorted({name for split in self.splits.values() for name in split.files}))
        raise data_error(f"{path} does not exist. {task} expects {expected} there.{hint}")

    def _folder_by_environment(self, task: str) -> Path:
        if "BERTKIT_DATA" in os.environ:
            return Path(os.environ["BERTKIT_DATA"]) / self.home
        raise usage_error(
            f"{task} needs its files: give their folder with --data DIR, "
            f"or set BERTKIT_DATA to the folder that holds {self.home}."
        )


def read_cells(table: Table, columns: Columns) -> Iterator[Cells]:
    """The rows of a table by the columns of a task; without a column of ids, the id of a row is its line number."""
    columns = columns if columns.id in table else replace(columns, id=None)
    used = columns.used()
    for row in table.rows(*used):
        cells = dict(zip(used, row.cells, strict=True))
        second = columns.second and require_text(cells[columns.second], columns.second, table.path, row.line)
        yield Cells(
            path=table.path,
            line=row.line,
            first=require_text(cells[columns.first], columns.first, table.path, row.line),
            second=second,
            label=_read_label(cells, columns, at_row(table.path, row.line)),
            id=cells[columns.id] if columns.id else str(row.line),
        )


def _read_label(cells: Mapping[str, str], columns: Columns, where: str) -> str | None:
    if columns.labels:
        return join_indicators({label: cells[label] for label in columns.labels}, where)
    return cells[columns.label].strip() if columns.label else None


def check_split(task: str, split: str, known: Collection[str]) -> None:
    """Raise a usage error for a split that is not one of those that the task has."""
    if split not in known:
        found = f"{task.removeprefix('files:')} has no {split} split. It has: {', '.join(known)}."
        raise usage_error(found + did_you_mean(split, known))
