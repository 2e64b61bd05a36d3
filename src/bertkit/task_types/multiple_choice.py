"""A question and several answers to choose from: the record that such tasks are values of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Feature
from bertkit.contracts import Encoder, Objective, Tokenizer
from bertkit.data.features import assemble, stack
from bertkit.errors import data_error, usage_error
from bertkit.formats.lines import at_line
from bertkit.formats.tables import Table
from bertkit.metrics.classification import accuracy
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.task_types.base import FileTask
from bertkit.task_types.choice_columns import (
    ChoiceCells,
    Spelling,
    find_choices,
    find_columns,
    find_texts,
    read_choice_cells,
    read_place,
)
from bertkit.task_types.example_reports import ExampleReport
from bertkit.task_types.held_out import describe_overlap, describe_repeated_ids, hold_out
from bertkit.task_types.task_files import Columns


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """``label`` is the place of the right choice, from 0; None where it is not known.

    Each choice goes on where ``stem`` ends.
    """

    id: str
    prompt: str
    choices: tuple[str, ...]
    stem: str = ""
    label: int | None = None

    @property
    def first(self) -> str:
        """The text that all choices share."""
        return self.prompt

    @property
    def second(self) -> str:
        """The texts that differ."""
        return "\0".join((self.stem, *self.choices))


@dataclass(frozen=True, slots=True)
class Choice:
    """The likeliest choice: its place from 0, its text, and the probability of every one.

    ``cut`` counts the tokens of all choices that the model has not read.
    """

    label: int
    text: str
    scores: tuple[float, ...]
    num_truncated: int = 0


@dataclass(frozen=True, kw_only=True)
class MultipleChoiceTask(FileTask):
    """Which of several texts goes with a prompt; examples may have different numbers of them.

    The columns of a split are the prompt (``first``), the beginning of all choices (``second``), the label and the id.
    ``choices`` are the columns of the choices, or the one column of JSON lists of them; without any they are found in
    each file by their names. ``spelling`` is how the files write which one is right.
    """

    shape: ClassVar[str] = "choices"

    metric: str = "accuracy"
    choices: tuple[str, ...] = ()
    spelling: Spelling = "number"

    def rows(self, split: str) -> Iterator[ChoiceExample]:
        """Every row of the files of a split, with a label or without."""
        for table in self.files.tables(self.name, split):
            where = self.files.splits[split]
            for cells in read_choice_cells(table, where.columns, self._choices_in(table)):
                yield self._example(cells, may_lack_label=where.may_lack_labels)

    def read(self, path: Path) -> Iterator[ChoiceExample]:
        """New input, without labels: a table with the task's columns."""
        table = Table(path)
        for cells in read_choice_cells(table, self._columns_in(table), self._choices_in(table)):
            yield self._example(cells)

    def read_line(self, name: str, line: str) -> ChoiceExample:
        """A prompt and its choices, with tabs between them."""
        prompt, *choices = line.split("\t")
        return make_example(name, prompt, choices, where=f"line {name}")

    def notes(self) -> list[str]:
        """What a person should know about train and dev before trusting a score, one sentence each."""
        notes: list[str] = []
        train = self._labelled_with_notes("train", notes)
        dev = self._labelled_with_notes("dev", notes) if "dev" in self.files.splits else []
        if self.heldout:
            held = len(hold_out(train, self.heldout)[1])
            notes.append(
                f"no dev file: {held:,} of {len(train):,} examples are held out as dev "
                "(chosen by the hash of the text; equal texts stay together)"
            )
        return notes + describe_overlap(train, dev)

    def _labelled_with_notes(self, split: str, notes: list[str]) -> list[ChoiceExample]:
        rows = list(self.rows(split))
        labelled = [example for example in rows if example.label is not None]
        if len(labelled) < len(rows):
            notes.append(f"{len(rows) - len(labelled):,} rows of {split} have no label and are left out")
        if self.files.splits[split].columns.id is not None:
            notes += describe_repeated_ids(split, ((example.id, example.label) for example in rows))
        return labelled

    def encode(self, example: ChoiceExample, tokenizer: Tokenizer) -> list[Feature]:
        """One feature of a row ``[CLS] prompt [SEP] stem choice [SEP]`` for each choice."""
        prompt = tokenizer.encode(example.prompt)
        texts = [f"{example.stem} {choice}".strip() for choice in example.choices]
        rows = [assemble(tokenizer, prompt, text, max_length=self.max_length) for text in texts]
        return [stack(rows, labels={MultipleChoice.label: IGNORE if example.label is None else example.label})]

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """A fresh vector."""
        return {"choice": MultipleChoice(encoder.hidden_size)}

    def decode(
        self, example: ChoiceExample, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]
    ) -> Choice:
        """The choice with the highest probability among those of the example."""
        (feature,), (output,) = features, outputs
        logits = output["logits"][: len(example.choices)].astype(np.float64)
        powers = np.exp(logits - logits.max())
        best = int(logits.argmax())
        return Choice(best, example.choices[best], tuple((powers / powers.sum()).tolist()), feature.num_truncated)

    def describe(self, example: ChoiceExample, prediction: Choice) -> dict[str, Any]:
        """``id``, the place of the choice as ``label``, its text, its ``probability`` and the ``scores`` of all."""
        record = {
            "id": example.id,
            "label": prediction.label,
            "choice": prediction.text,
            "probability": round(max(prediction.scores), 6),
            "scores": [round(score, 6) for score in prediction.scores],
        }
        return {**record, "num_truncated": prediction.num_truncated} if prediction.num_truncated else record

    def mark(self, example: ChoiceExample, prediction: Choice) -> ExampleReport:
        """The right and the given choice as texts; a wrong one is as wrong as it was sure."""
        assert example.label is not None
        probability = max(prediction.scores)
        return ExampleReport(
            id=example.id,
            text=" | ".join(filter(None, (example.prompt, example.stem, *example.choices))),
            gold=example.choices[example.label],
            answer=prediction.text,
            size=0.0 if prediction.label == example.label else probability,
            confidence=probability,
            num_truncated=prediction.num_truncated,
        )

    def score(self, examples: Iterable[ChoiceExample], predictions: Iterable[Choice]) -> dict[str, float]:
        """``accuracy``; every example needs its label."""
        gold = [example.label for example in examples]
        if unknown := gold.count(None):
            raise data_error(f"{unknown:,} of {len(gold):,} examples have no label; they cannot be scored.")
        answers = [prediction.label for prediction in predictions]
        return {"accuracy": accuracy(list(map(str, gold)), list(map(str, answers)))}

    def _columns_in(self, table: Table) -> Columns:
        """Those of train without the label, and without the id where the table has none."""
        splits = list(self.files.splits.values())
        columns = replace(splits[0].columns, label=None) if splits else find_texts(table, self._choices_in(table))
        return columns if columns.id in table.columns else replace(columns, id=None)

    def columns_of(self, path: Path) -> Columns:
        """Where a file has its prompt and its label, by their names."""
        table = Table(path)
        return find_columns(table, self._choices_in(table))

    def _choices_in(self, table: Table) -> tuple[str, ...]:
        found = self.choices or find_choices(table.columns)
        if not found:
            raise usage_error(f"{table.path} has no columns of choices, such as choice0, choice1 or A, B.")
        return found

    def _example(self, cells: ChoiceCells, *, may_lack_label: bool = False) -> ChoiceExample:
        where = at_line(cells.path, cells.line)
        example = make_example(cells.id, cells.prompt, cells.choices, stem=cells.stem, where=where)
        if cells.label is None or (not cells.label and may_lack_label):
            return example
        return replace(example, label=read_place(cells.label, cells.choices, self.spelling, where))


def make_example(id: str, prompt: str, choices: Sequence[str], *, where: str, stem: str = "") -> ChoiceExample:
    """An example without a label; fewer than two choices or an empty one is an error that says ``where``."""
    if len(choices) < 2:
        raise data_error(
            f"{where}: {len(choices)} choice{'s' * (not choices)}; there must be at least two to choose from."
        )
    for place, choice in enumerate(choices):
        if not choice.strip():
            raise data_error(f"{where}: choice {place} of 0 to {len(choices) - 1} is empty. Give it a text.")
    return ChoiceExample(id, prompt, tuple(choices), stem)
