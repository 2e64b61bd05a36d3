"""Reads questions about contexts: files in SQuAD's format, tables, and lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bertkit.errors import data_error
from bertkit.formats.tables import Table
from bertkit.storage.json_text import parse_json
from bertkit.task_files.files import Columns
from bertkit.task_files.squad_files import (
    COLUMNS,
    Fault,
    Faults,
    SpanExample,
    describe_faults,
    is_json_object,
    make_ids_unique,
    read_questions,
)
from bertkit.task_types.held_out import HoldOut, describe_held_out, describe_overlap, hash_texts, hold_out
from bertkit.task_types.reader import Reader

_FAULTS_OF_INPUT: tuple[Fault, ...] = ("repeated", "blank", "empty")
"""Those of questions that are to be answered."""


def _context_key(example: SpanExample) -> str:
    return hash_texts(example.context, "")


CONTEXTS = HoldOut(
    "contexts",
    split=partial(hold_out, key=_context_key, by_class=False),
    describe=partial(describe_held_out, noun="questions", together="questions about one", key="context"),
    compare=describe_overlap,
)
"""A share of the contexts, with all their questions."""


@dataclass(frozen=True, kw_only=True)
class QuestionReader(Reader[SpanExample]):
    """Reads questions; without ``null`` those that are marked as impossible are left out."""

    makes_ids_unique = True
    held_out = CONTEXTS

    null: bool

    def rows(self, split: str) -> Iterator[SpanExample]:
        """Every question in the files of a split; an answer with a wrong place is moved to where its text is."""
        return self._rows(split, Faults())

    def read(self, path: Path) -> Iterator[SpanExample]:
        """Questions of a ``.json`` file in SQuAD's format, or of a table with ``question`` and ``context``."""
        return make_ids_unique(read_questions(path, Faults()), Faults())

    def open_table(self, path: Path) -> tuple[Table, Columns] | None:
        """The table and its columns; None for a file in SQuAD's format."""
        return None if is_json_object(path) else (Table(path), COLUMNS)

    def columns_of(self, path: Path) -> Columns:
        """The columns of every table of questions."""
        return COLUMNS

    def inspect_input(self, path: Path) -> tuple[int, list[str]]:
        """The number of questions in a file, and what is wrong with them."""
        faults = Faults()
        count = sum(1 for _ in make_ids_unique(read_questions(path, faults), faults))
        return count, describe_faults(path.name, Faults({kind: faults[kind] for kind in _FAULTS_OF_INPUT}))

    def read_line(self, name: str, line: str) -> SpanExample:
        """A JSON object with ``question`` and ``context``, or the two with a tab between them."""
        if not line.lstrip().startswith("{"):
            question, tab, context = line.partition("\t")
            if not tab:
                raise data_error(f"line {name}: no tab. Write a question, a tab and the text that has its answer.")
            return SpanExample(name, question, context)
        try:
            record = parse_json(line)
        except ValueError as error:
            raise data_error(f"line {name} is not JSON that can be read: {error}.") from error
        question, context = record.get("question"), record.get("context")
        if not isinstance(question, str) or not isinstance(context, str):
            raise data_error(f'line {name}: not a JSON object with the texts "question" and "context".')
        return SpanExample(str(record.get("id", name)), question, context)

    def trainable(self, examples: list[SpanExample]) -> list[SpanExample]:
        """The questions with an answer in their context, and with ``null`` the impossible ones."""
        return [example for example in examples if self._is_trainable(example)]

    def labelled_with_notes(self, split: str, notes: list[str]) -> list[SpanExample]:
        """The questions with known answers; the faults of single questions are added to ``notes``."""
        faults = Faults()
        labelled = [example for example in self._rows(split, faults) if example.label is not None]
        notes += describe_faults(split, faults)
        return labelled

    def _rows(self, split: str, faults: Faults) -> Iterator[SpanExample]:
        paths = self.files.paths(self.name, split)
        return make_ids_unique((each for path in paths for each in self._kept(path, faults)), faults)

    def _kept(self, path: Path, faults: Faults) -> Iterator[SpanExample]:
        for example in read_questions(path, faults):
            if self.null or example.answers or not example.impossible:
                yield example
            else:
                faults["without answer"] += 1

    def _is_trainable(self, example: SpanExample) -> bool:
        if example.answers == ():
            return self.null and example.impossible
        return example.target is not None and not example.contradicts_itself
