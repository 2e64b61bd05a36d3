"""What reads the examples of a task: the files of its splits, and new input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic

from bertkit.contracts import E
from bertkit.formats.tables import Table
from bertkit.task_files.files import Columns, TaskFiles
from bertkit.task_types.held_out import (
    IdCount,
    L,
    describe_held_rows,
    describe_missing_classes,
    describe_overlap,
    describe_repeated_ids,
    describe_unlabelled,
    hold_out_rows,
)


@dataclass(frozen=True, kw_only=True)
class Reader(ABC, Generic[E]):
    """Reads the ``files`` of the task ``name``; ``heldout`` is the share of train that serves as dev.

    Where ``makes_ids_unique``, a repeated id in new input is changed by ``read``. ``held_out`` names what is held out,
    of which there must be two.
    """

    makes_ids_unique: ClassVar[bool] = False
    held_out: ClassVar[str] = "texts of one class"

    name: str
    files: TaskFiles
    heldout: float = 0.0

    @abstractmethod
    def rows(self, split: str) -> Iterator[E]:
        """Every example in the files of a split, with a gold answer or without."""

    @abstractmethod
    def read(self, path: Path) -> Iterator[E]:
        """New input to be predicted; gold answers in it are ignored."""

    def open_table(self, path: Path) -> tuple[Table, Columns] | None:
        """New input as a table whose rows are the examples that ``read`` gives, and its columns; None for others."""
        return None

    @abstractmethod
    def read_line(self, name: str, line: str) -> E:
        """New input from one line of a stream; ``name`` becomes its id unless the line has one."""

    @abstractmethod
    def columns_of(self, path: Path) -> Columns:
        """Where a file has the texts and the answer."""

    @abstractmethod
    def split_train(self) -> tuple[list[E], list[E]]:
        """(train, dev): the labelled examples of train without those that are held out, and those."""

    @abstractmethod
    def notes(self, limit: int | None = None, dev_limit: int | None = None) -> list[str]:
        """What a user should know about train and dev before trusting a score, one sentence each.

        Texts that occur more than once are counted among the first ``limit`` examples of train and ``dev_limit`` of
        dev, which are those that are used.
        """

    def examples(self, split: str) -> list[E]:
        """The examples of a split in the order of the files; in train and dev, only those with a gold answer."""
        if split not in ("train", "dev"):
            return list(self.rows(split))
        if self.heldout:
            train, dev = self.split_train()
            return train if split == "train" else dev
        return self.trainable(self.labelled(split)) if split == "train" else self.labelled(split)

    def train_and_dev(self) -> tuple[list[E], list[E]]:
        """The examples of both splits; the files of train are read once, also where dev is held out of them."""
        return self.split_train() if self.heldout else (self.examples("train"), self.examples("dev"))

    def labelled(self, split: str) -> list[E]:
        """The examples in the files of a split that have a gold answer."""
        return [example for example in self.rows(split) if example.label is not None]

    def trainable(self, examples: list[E]) -> list[E]:
        """The examples that a model can be trained on; all, unless a reader says otherwise."""
        return examples

    def extra_dev_splits(self) -> list[str]:
        """Splits that are scored beside dev, such as ``dev_mismatched``, if their files exist."""
        splits = [split for split in self.files.splits if split.startswith("dev_")]
        return [split for split in splits if not self.files.missing(self.name, split)]

    def inspect_input(self, path: Path) -> tuple[int, list[str]]:
        """The number of examples in new input, and what a user should know about it, one sentence each."""
        ids = IdCount()
        for example in self.read(path):
            ids.add(example.id)
        return len(ids), ids.describe(path.name, (example.id for example in self.read(path)))

    def describe_rows(self, split: str, labelled: Sequence[E]) -> list[str]:
        """What else is unusual about the labelled examples of a split."""
        return []

    def _labelled_with_notes(self, split: str, notes: list[str]) -> list[E]:
        """The labelled examples of a split; what is unusual about the split is added to ``notes``."""
        rows = list(self.rows(split))
        labelled = [example for example in rows if example.label is not None]
        notes += describe_unlabelled(split, len(rows) - len(labelled))
        notes += self.describe_rows(split, labelled)
        if self.files.splits[split].columns.id is not None:
            notes += describe_repeated_ids(split, ((example.id, example.label) for example in rows))
        return labelled


@dataclass(frozen=True, kw_only=True)
class RowReader(Reader[L], Generic[L]):
    """Reads tables with an example in each row."""

    def split_train(self) -> tuple[list[L], list[L]]:
        """(train, dev): the share of every class that is held out is chosen by the hash of the texts."""
        return hold_out_rows(self.labelled("train"), self.heldout)

    def notes(self, limit: int | None = None, dev_limit: int | None = None) -> list[str]:
        """Rows that are left out, repeated ids, texts that train and dev share, and what is held out."""
        notes: list[str] = []
        train = self._labelled_with_notes("train", notes)
        dev = self._labelled_with_notes("dev", notes) if "dev" in self.files.splits else []
        if self.heldout:
            has_classes = any(isinstance(example.label, str | tuple) for example in train)
            train, dev = hold_out_rows(train, self.heldout)
            notes.append(describe_held_rows(train, dev, share=", class by class" if has_classes else ""))
        return [*notes, *describe_overlap(train[:limit], dev[:dev_limit]), *describe_missing_classes(train, dev)]
