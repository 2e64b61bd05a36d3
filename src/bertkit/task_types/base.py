"""The base of all tasks whose examples are in files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from bertkit.config.records import to_plain
from bertkit.contracts import E, P, Task
from bertkit.errors import count_of, data_error, did_you_mean, usage_error, verb_of
from bertkit.metrics.bootstrap import Statistic
from bertkit.metrics.classification import ClassScore
from bertkit.ranges import ShareBelowOne, TaskLength, check_ranges
from bertkit.task_files.files import Split, TaskFiles
from bertkit.task_types.example_reports import ExampleReport, report_prediction
from bertkit.task_types.reader import Reader

AnswerRecord = dict[str, Any]
"""One prediction in a file of predictions, as JSON."""


BaselineMethod = Callable[[Sequence[E], Sequence[E]], Sequence[P]]
"""(train, dev) -> the predictions for dev."""


@dataclass(frozen=True, kw_only=True)
class AnswerColumns:
    """How a file shows predictions: the ``columns`` of a table, and which of them is the ``answer``.

    ``further`` are fields that a record may have beside them, and ``files`` those of them that also get a JSON file,
    for the official programs. ``kept`` are columns of the input. ``join`` makes one cell of an answer that is a list.
    """

    columns: tuple[str, ...]
    further: tuple[str, ...] = ("scores", "num_truncated")
    files: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    answer: str = "label"
    join: Callable[[Sequence[str]], str] = " ".join


@dataclass(frozen=True, kw_only=True)
class FileTask(Task[E, P]):
    """A task whose examples are in files: one of ``tasks/``, of a user's module, or guessed from a user's table.

    ``max_length`` is the length of a feature in tokens. ``heldout`` is the share of train that serves as dev; 0 if
    there is a dev file. ``about`` is a sentence about the task and its source.

    The class variables hold what depends on the type of the task: ``pipeline_tag`` is Hugging Face's name of it,
    ``pipeline_method`` the method of ``Pipeline`` for a single input, ``score_names`` the scores that ``metric`` may be
    (any if it is empty, as in a user's own class), ``predicts_one_class`` whether a prediction is one of ``labels``, so
    that a confusion matrix and McNemar's test apply, ``spells_answers`` whether the ``label`` of a prediction is a name
    or a text that the user knows, and not tags or the number of a choice, and ``truncated`` what may be cut off: a text
    or a question. The weights of the heads depend on the settings ``head_fields``, and the tokens of a row on
    ``row_fields``.
    """

    pipeline_tag: ClassVar[str] = ""
    pipeline_method: ClassVar[str] = ""
    score_names: ClassVar[tuple[str, ...]] = ()
    predicts_one_class: ClassVar[bool] = False
    spells_answers: ClassVar[bool] = False
    truncated: ClassVar[str] = "text"
    head_fields: ClassVar[tuple[str, ...]] = ()
    row_fields: ClassVar[tuple[str, ...]] = ("max_length",)

    files: TaskFiles = field(default_factory=TaskFiles)
    max_length: TaskLength = 128
    heldout: ShareBelowOne = 0.0
    about: str = ""

    def __post_init__(self) -> None:
        check_ranges(self)
        check_scores(self, "metric", self.metric)

    @property
    def answer_columns(self) -> AnswerColumns:
        """The layout of a file of predictions."""
        return AnswerColumns(columns=("id", "label"))

    @property
    @abstractmethod
    def reader(self) -> Reader[E]:
        """What reads the files of the task, and new input."""

    def at(self, folder: Path) -> Self:
        """The same task with its files in ``folder``."""
        return replace(self, files=replace(self.files, folder=Path(folder)))

    def with_files(self, **files: str | Path | Sequence[str | Path]) -> Self:
        """The same task with other files for some splits: ``with_files(dev="mine.tsv")``, or several in a list.

        For a task without files of its own, the columns are guessed from the first file.
        """
        bound = self.files
        for split, given in files.items():
            paths = [given] if isinstance(given, str | Path) else given
            if not bound.splits:
                columns = self.reader.columns_of(Path(paths[0]))
                bound = replace(bound, splits={"train": Split(files=(), columns=columns, may_lack_labels=True)})
            bound = bound.replaced(split, tuple(str(path) for path in paths))
        return replace(self, files=bound, heldout=0.0 if "dev" in files else self.heldout)

    def record(self) -> dict[str, object]:
        """The task as JSON, for the folder of a model that was trained on it: ``type`` names its class."""
        return {"type": type_name(type(self)), **to_plain(self)}

    def examples(self, split: str) -> list[E]:
        """The examples of ``train``, ``dev``, ``test`` or another split, in the order of the files.

        Those without a gold answer are left out of train and dev.
        """
        return self.reader.examples(split)

    def calibrate(self, examples: Sequence[E], predictions: Sequence[P]) -> tuple[Self, Sequence[P]]:
        """The task with the thresholds that score best on ``examples``, and the predictions under them.

        A task without thresholds returns itself and ``predictions``.
        """
        return self, predictions

    def reconsider(self, prediction: P) -> P:
        """Adapt a prediction that another task of this type has decoded, before this task scores it.

        What that task's thresholds decided stays; but a task in which every question has an answer replaces "no answer"
        by the best span.
        """
        return prediction

    def score_parts(self, examples: Iterable[E], predictions: Iterable[P]) -> list[ClassScore]:
        """Precision, recall and F1 of each type of entity, or of each label where several apply; else nothing."""
        return []

    def resampling_statistic(
        self, examples: Sequence[E], predictions: Sequence[P], scores: Sequence[str]
    ) -> Statistic | None:
        """A function that computes ``scores`` on many resamples at once; None where the task has none."""
        return None

    def baselines(self) -> Mapping[str, BaselineMethod[E, P]]:
        """Trivial methods that a model has to beat, by name."""
        return {}

    def advise_on_truncation(self, positions: int | None) -> str:
        """A sentence that says what to do where examples do not fit into ``max_length``; empty if nothing can be done.

        ``positions`` is the number of tokens that the model reads at most, None for any.
        """
        if positions is not None and 2 * self.max_length > positions:
            return ""
        return f"Read more of them: --set task.max_length={2 * self.max_length}"

    @abstractmethod
    def describe(self, example: E, prediction: P) -> AnswerRecord:
        """A prediction as one JSON record of a file of predictions; it begins with the ``id`` of the example."""

    def report(self, example: E, prediction: P) -> ExampleReport:
        """What an evaluation shows of one example and its prediction."""
        described = self.describe(example, prediction)
        return report_prediction(
            example, prediction, described, self.metric, lambda: self.score([example], [prediction])[self.metric]
        )


def type_name(kind: type[FileTask]) -> str:
    """The name of a class of tasks in a record: ``tagging``, or ``my_lab.ranking:RankingTask`` of a user's module.

    A class of a notebook, of a script or of a function is a usage error: whoever opens the model could not import it.
    """
    if kind.__module__ == "__main__" or kind.__name__ != kind.__qualname__:
        raise usage_error(
            f"{kind.__qualname__} cannot be imported from where it is defined, so that its model could not be opened "
            "later: move the class to the top level of a module, such as my_lab/ranking.py, and import it from there."
        )
    package, _, module = kind.__module__.rpartition(".")
    return module if package == __package__ else f"{kind.__module__}:{kind.__qualname__}"


def describe_truncation(task: FileTask, count: int) -> str:
    """What happened to ``count`` examples that did not fit: ``were cut to 128 tokens``."""
    if task.truncated != "text":
        return f"had a {task.truncated} that was cut"
    return f"{verb_of(count, 'was', 'were')} cut to {task.max_length} tokens"


def same_answers(first: FileTask, second: FileTask) -> bool:
    """Whether a model for one task can predict the other: both have the same type and labels."""
    return type(first) is type(second) and first.labels == second.labels


def have_same_heads(first: FileTask, second: FileTask) -> bool:
    """Whether models for the two tasks have heads of the same shape and meaning."""
    return same_answers(first, second) and all(
        getattr(first, name) == getattr(second, name) for name in first.head_fields
    )


def check_scores(task: FileTask, field: str, *names: str) -> None:
    """Raise an error if ``names``, the value of a ``field``, are not all scores of the task."""
    known = task.score_names
    for name in names:
        if known and name not in known:
            hint = did_you_mean(name, known)
            raise usage_error(f"{field} is {name}; the scores of {task.name} are {', '.join(known)}.{hint}")


def refuse_unlabelled(labels: Sequence[object]) -> None:
    """Raise an error if an example that is to be scored has no gold answer."""
    if unknown := sum(label is None for label in labels):
        have = f"{unknown:,} of {count_of(len(labels), 'example')} {verb_of(unknown, 'has', 'have')}"
        raise data_error(f"{have} no label and cannot be scored.")
