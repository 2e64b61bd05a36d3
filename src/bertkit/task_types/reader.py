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
from bertkit.task_types.held_out import ROWS, HoldOut, IdCount, describe_repeated_ids, describe_unlabelled


@dataclass(frozen=True, kw_only=True)
class Reader(ABC, Generic[E]):
    """Reads the ``files`` of the task ``name``; ``heldout`` is the share of train that serves as dev.

    Where ``makes_ids_unique``, a repeated id in new input is changed by ``read``. ``held_out`` says what serves as dev
    where there is no dev file.
    """

    makes_ids_unique: ClassVar[bool] = False
    held_out: ClassVar[HoldOut] = ROWS

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

    def split_train(self) -> tuple[list[E], list[E]]:
        """(train, dev): the labelled examples of train without those that are held out, and those."""
        kept, held = self.held_out.split(self.labelled("train"), self.heldout)
        return self.trainable(kept), held

    def notes(self, limit: int | None = None, dev_limit: int | None = None) -> list[str]:
        """What a user should know about train and dev before trusting a score, one sentence each.

        The splits are compared by the first ``limit`` examples of train and ``dev_limit`` of dev, which are those that
        are used.
        """
        notes: list[str] = []
        splits = [split for split in ("train", "dev") if split in self.files.splits]
        found = {split: self.labelled_with_notes(split, notes) for split in splits}
        train, dev = found.get("train", []), found.get("dev", [])
        if self.heldout:
            train, dev = self.held_out.split(train, self.heldout)
            notes.append(self.held_out.describe(train, dev))
        return notes + self.held_out.compare(self.trainable(train)[:limit], dev[:dev_limit])

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

    def labelled_with_notes(self, split: str, notes: list[str]) -> list[E]:
        """The labelled examples of a split; what is unusual about the split is added to ``notes``."""
        rows = list(self.rows(split))
        labelled = [example for example in rows if example.label is not None]
        notes += describe_unlabelled(split, len(rows) - len(labelled))
        notes += self.describe_rows(split, labelled)
        if self.files.splits[split].columns.id is not None:
            notes += describe_repeated_ids(split, ((example.id, example.label) for example in rows))
        return labelled
