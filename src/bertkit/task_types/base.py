"""A task whose examples are in files: what the verbs ask of it, whatever the shape of its answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from bertkit import config
from bertkit.contracts import Task
from bertkit.errors import usage_error
from bertkit.metrics.classification import ClassScore
from bertkit.task_types.example_reports import ExampleReport, mark_answer
from bertkit.task_types.held_out import describe_repeated_ids, hold_out
from bertkit.task_types.task_files import Columns, Split, TaskFiles

_SHORTEST = 3
"""[CLS], a token and [SEP]."""


@dataclass(frozen=True, kw_only=True)
class FileTask(Task):
    """Every task of the shelf, and every table of a user's own.

    ``max_length`` is that of one feature in tokens. With ``heldout`` that share of train serves as dev. ``about`` says
    what is asked and where the files come from. ``shape`` names the kind of answer in records; a subclass has its own.
    """

    shape: ClassVar[str]

    files: TaskFiles = field(default_factory=TaskFiles)
    max_length: int = 128
    heldout: float = 0.0
    about: str = ""

    def at(self, folder: Path) -> Self:
        """The same task with its files in ``folder``."""
        return replace(self, files=replace(self.files, folder=Path(folder)))

    def with_files(self, **files: Sequence[str | Path]) -> Self:
        """The same task with other files for some splits: ``with_files(dev=["mine.tsv"])``.

        A task that never had files of its own finds out where theirs have what.
        """
        bound = self.files
        for split, paths in files.items():
            if not bound.splits:
                known = Split(files=(), columns=self.columns_of(Path(paths[0])), may_lack_labels=True)
                bound = replace(bound, splits={"train": known})
            bound = bound.replaced(split, tuple(str(path) for path in paths))
        return replace(self, files=bound, heldout=0.0 if "dev" in files else self.heldout)

    def record(self) -> dict[str, Any]:
        """The task as plain JSON, for the folder of a model that was trained on it."""
        return {"shape": self.shape, **config.to_json(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The task that ``record`` was made from."""
        fields = {name: value for name, value in record.items() if name != "shape"}
        return config.from_json(cls, fields, source="the task of the model")

    def examples(self, split: str) -> list[Any]:
        """The examples of ``train``, ``dev``, ``test`` or another split, in the order of the files.

        Those without a gold answer are left out of train and dev.
        """
        if self.heldout and split in ("train", "dev"):
            train, dev = hold_out(self.labelled("train"), self.heldout)
            return train if split == "train" else dev
        return self.labelled(split) if split in ("train", "dev") else list(self.rows(split))

    def further_devs(self) -> list[str]:
        """Splits that are scored beside dev and pick nothing: ``dev_mismatched``, where such files are there."""
        splits = [split for split in self.files.splits if split.startswith("dev_")]
        return [split for split in splits if not self.files.missing(self.name, split)]

    def labelled(self, split: str) -> list[Any]:
        """The examples in the files of a split that have a gold answer."""
        return [example for example in self.rows(split) if example.label is not None]

    def __post_init__(self) -> None:
        if self.max_length < _SHORTEST:
            raise usage_error(
                f"max_length is {self.max_length}; {_SHORTEST} tokens are the least, one of them of a word."
            )

    @abstractmethod
    def columns_of(self, path: Path) -> Columns:
        """Where a file has the texts and the answer."""

    @abstractmethod
    def rows(self, split: str) -> Iterator[Any]:
        """Every example in the files of a split, with a gold answer or without."""

    @abstractmethod
    def read(self, path: Path) -> Iterator[Any]:
        """New input of the task's own kind, to be answered; gold answers in it are passed over."""

    @abstractmethod
    def read_line(self, name: str, line: str) -> Any:
        """The same from one line of a stream; ``name`` becomes its id where the line brings none."""

    def look_through(self, path: Path) -> tuple[int, list[str]]:
        """How many examples new input has, and what a person should know of it, one sentence each."""
        ids = [example.id for example in self.read(path)]
        return len(ids), describe_repeated_ids(path.name, ((id, None) for id in ids))

    def calibrate(self, examples: Sequence[Any], predictions: Sequence[Any]) -> tuple[Self, Sequence[Any]]:
        """The task with its thresholds where they score best on ``examples``, and the predictions as it then decides.

        A task that decides nothing by a threshold gives back itself and them.
        """
        return self, predictions

    def reconsider(self, prediction: Any) -> Any:
        """What an answer that was given under another task of the same shape says under this one."""
        return prediction

    def score_parts(self, examples: Iterable[Any], predictions: Iterable[Any]) -> list[ClassScore]:
        """Precision, recall and F1 of whatever answers consist of: types of entities, labels of which several apply.

        Nothing where an answer is one thing.
        """
        return []

    def advise_on_cuts(self) -> str:
        """What to do where the texts of examples do not fit into ``max_length``, in a sentence."""
        return f"Make room: --set task.max_length={2 * self.max_length}"

    @abstractmethod
    def notes(self) -> list[str]:
        """What a person should know about train and dev before trusting a score, one sentence each."""

    @abstractmethod
    def describe(self, example: Any, prediction: Any) -> dict[str, Any]:
        """An answer as one JSON record of a file of predictions, beginning with the ``id`` of the example."""

    def mark(self, example: Any, prediction: Any) -> ExampleReport:
        """What a report says of one answered example."""
        described = self.describe(example, prediction)
        return mark_answer(example, prediction, described, lambda: self.score([example], [prediction])[self.metric])
