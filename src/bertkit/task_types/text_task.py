"""The base of the tasks on one text or a pair: classification, regression and multi-label classification."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Feature, Label
from bertkit.contracts import OutputArrays, Tokenizer
from bertkit.data.features import assemble, assemble_windows, stack
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.nn.text_pooling import Pooling
from bertkit.ranges import NonNegativeInt
from bertkit.results import Result
from bertkit.task_files.labels import list_labels
from bertkit.task_types.base import (
    AnswerRecord,
    BaselineMethod,
    FileTask,
    check_scores,
    refuse_unlabelled,
)
from bertkit.task_types.baselines import most_frequent
from bertkit.task_types.probabilities import Activation
from bertkit.task_types.text_reader import TextExample, TextLabel, TextReader


class HeadSettings(TypedDict):
    """How a head reads a row; see ``TextTask``."""

    pooling: Pooling
    pair_head: bool


@dataclass(frozen=True, slots=True, repr=False)
class Prediction(Result):
    """``label`` is a class, a number or several labels; ``scores`` has the probability of every class or label.

    ``num_truncated`` counts the tokens at the end of the text that the model has not read.
    """

    label: TextLabel
    scores: Mapping[str, float] = field(default_factory=dict)
    num_truncated: int = 0


@dataclass(frozen=True, kw_only=True)
class TextTask(FileTask[TextExample, Prediction]):
    """A prediction for a text, or for two (``pair``).

    ``metric`` and ``also`` are names of scores. With a ``stride`` a text that is too long is read in windows that begin
    every ``stride`` tokens; each window is a training example, and the prediction is the mean over the windows. Without
    a stride the end of the text is cut off.

    With ``both_orders`` a pair is read twice, the second time with its texts exchanged, and the prediction is made from
    the sum of the two states: for tasks in which the texts have no order (Radford et al. 2018, section 3.3).

    ``output`` is the name of the head's output, and ``activation`` the function that makes answers of it.

    ``pooling`` is what the head reads of a row: the encoder's pooled state (``cls``), or the ``mean`` or the ``max`` of
    all states through a layer of its own. With ``pair_head`` that layer reads how much the tokens of both texts differ.
    """

    pipeline_tag = "text-classification"
    output: ClassVar[str] = "logits"
    activation: ClassVar[Activation] = "softmax"
    head_fields = ("pooling", "pair_head")
    row_fields = ("max_length", "pair", "stride", "both_orders")

    also: tuple[str, ...] = ()
    pair: bool = False
    stride: NonNegativeInt = 0
    both_orders: bool = False
    pooling: Pooling = "cls"
    pair_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scores(self, "also", *self.also)
        if self.both_orders and not self.pair:
            raise usage_error(f"both_orders is for pairs of texts; an example of {self.name} is one text.")
        if self.both_orders and self.stride:
            raise usage_error("both_orders and stride cannot be combined: leave out one of them.")
        if self.stride > max(self.widest_stride, 0):
            raise usage_error(
                f"stride is {self.stride}, but a window of {self.max_length} tokens holds {self.widest_stride} of the "
                "text: tokens between two windows would be lost. Choose a stride up to that."
            )
        for split in self.files.splits.values():
            if split.columns.second is not None and not self.pair:
                raise usage_error(
                    f"{self.name} reads two texts, the columns {split.columns.first} and {split.columns.second}: set "
                    "pair=True in the task."
                )
        if self.pair_head and not self.pair:
            raise usage_error(f"pair_head is for pairs of texts; an example of {self.name} is one text.")
        if self.pair_head and self.pooling == "cls":
            raise usage_error("pair_head reads the mean or maximum over all tokens: set task.pooling=mean or max.")

    @property
    def head_settings(self) -> HeadSettings:
        """The settings of the task that its head takes."""
        return {"pooling": self.pooling, "pair_head": self.pair_head}

    @abstractmethod
    def read_label(self, cell: str, where: str) -> TextLabel:
        """The gold answer in a cell of the files; ``where`` is its place, for errors."""

    @abstractmethod
    def encode_label(self, label: TextLabel | None) -> dict[str, Label]:
        """The label of a feature, by the name of the loss that reads it; IGNORE for None."""

    def spell(self, prediction: Prediction) -> str:
        """The prediction as a cell of the task's files."""
        return str(prediction.label)

    @abstractmethod
    def score_answers(self, name: str, gold: Sequence[TextLabel], answers: Sequence[TextLabel]) -> float:
        """The score ``name``."""

    @property
    def reader(self) -> TextReader:
        """What reads the files of the task, and new input."""
        return TextReader(
            name=self.name, files=self.files, heldout=self.heldout, pair=self.pair, read_label=self.read_label
        )

    @property
    def widest_stride(self) -> int:
        """The tokens of a long text in one window; for a pair, half of the window is left to the other text."""
        available = self.max_length - (3 if self.pair else 2)
        return available - available // 2 if self.pair else available

    def encode(self, example: TextExample, tokenizer: Tokenizer) -> list[Feature]:
        """Features of at most ``max_length`` tokens; one, unless there is a ``stride``.

        With ``both_orders`` it has two rows: the pair, and the pair with its texts exchanged.
        """
        if self.pair != (example.second is not None):
            expected, found = ("two texts", "one") if self.pair else ("one text", "two")
            raise usage_error(f"an example of {self.name} is {expected}; example {example.id} has {found}.")
        texts, length = (example.first, example.second), self.max_length
        labels = self.encode_label(example.label)
        if self.stride:
            return assemble_windows(tokenizer, *texts, max_length=length, stride=self.stride, labels=labels)
        if self.both_orders and example.second is not None:
            orders = (texts, (example.second, example.first))
            rows = [assemble(tokenizer, *pair, max_length=length) for pair in orders]
            return [replace(stack(rows, labels=labels), num_truncated=rows[0].num_truncated)]
        return [assemble(tokenizer, *texts, max_length=length, labels=labels)]

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        """``metric`` and ``also``, by name; every example needs its label."""
        labels = [example.label for example in examples]
        refuse_unlabelled(labels)
        gold = [label for label in labels if label is not None]
        answers = [prediction.label for prediction in predictions]
        names = dict.fromkeys((self.metric, *self.also))
        return {name: self.score_answers(name, gold, answers) for name in names}

    def advise_on_truncation(self, positions: int | None) -> str:
        """How a text that is too long can be read to its end."""
        if self.stride or self.both_orders:
            return super().advise_on_truncation(positions)
        return f"Read them whole: --set task.stride={min(self.max_length // 2, self.widest_stride)}"

    def describe(self, example: TextExample, prediction: Prediction) -> AnswerRecord:
        """``id``, ``label``, and where they exist the ``scores`` of all labels."""
        return prediction_record(example, prediction)


def predict_most_frequent(train: Sequence[TextExample], dev: Sequence[TextExample]) -> list[Prediction]:
    """The most frequent answer of train for every example of dev."""
    return [Prediction(most_frequent([example.label for example in train if example.label is not None]))] * len(dev)


def predictions_of(
    method: Callable[[Sequence[TextExample], Sequence[TextExample]], Sequence[TextLabel]],
) -> BaselineMethod[TextExample, Prediction]:
    """A method that gives answers as one that gives predictions."""
    return lambda train, dev: [Prediction(answer) for answer in method(train, dev)]


def as_numbers(answers: Sequence[TextLabel | None]) -> list[float]:
    """The answers that are numbers."""
    return [float(answer) for answer in answers if isinstance(answer, int | float)]


def mean_output(outputs: Sequence[OutputArrays], name: str) -> NDArray[np.float64]:
    """The mean over the windows of one example (Sun et al. 2019, section 5.3)."""
    return np.asarray(np.mean([output[name] for output in outputs], axis=0, dtype=np.float64))


def count_truncated(features: Sequence[Feature]) -> int:
    """The tokens that were cut off all features of one example."""
    return sum(feature.num_truncated for feature in features)


def parse_class(cell: str, labels: Sequence[str], spellings: Sequence[str], *, task: str, where: str) -> str:
    """The class that a cell names: by its spelling in the files, or by its own name."""
    if cell in spellings:
        return labels[spellings.index(cell)]
    if cell in labels:
        return cell
    known = spellings or labels
    shown = list_labels(known)
    raise data_error(f'{where}: unknown label "{cell}". {task} knows: {shown}.{did_you_mean(cell, known)}')


def prediction_record(
    example: TextExample, prediction: Prediction, *, probability: float | None = None
) -> AnswerRecord:
    """``id`` and ``label``; where they exist, also ``probability``, ``scores`` and ``num_truncated``."""
    record: AnswerRecord = {"id": example.id, "label": prediction.label}
    if probability is not None:
        record["probability"] = round(probability, 6)
    if prediction.scores:
        record["scores"] = {label: round(score, 6) for label, score in prediction.scores.items()}
    if prediction.num_truncated:
        record["num_truncated"] = prediction.num_truncated
    return record
