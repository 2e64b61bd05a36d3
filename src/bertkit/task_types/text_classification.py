"""Classification of a text or of a pair of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from bertkit.batch import IGNORE, Feature, Label
from bertkit.contracts import Encoder, Objective, OutputArrays
from bertkit.errors import did_you_mean, list_names, usage_error
from bertkit.metrics.bootstrap import Statistic, resample_classes
from bertkit.metrics.classification import accuracy, binary_f1, macro_f1, matthews
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.ranges import PositiveFloat
from bertkit.task_files.labels import check_labels, fold_label, varies_by_format
from bertkit.task_types.base import AnswerColumns, AnswerRecord, BaselineMethod
from bertkit.task_types.baselines import BAG_OF_WORDS, MOST_FREQUENT, predict_classes
from bertkit.task_types.class_weights import balance_classes, check_weights, list_weights, parse_weights
from bertkit.task_types.probabilities import softmax
from bertkit.task_types.text_reader import TextExample, TextLabel
from bertkit.task_types.text_task import (
    Prediction,
    TextTask,
    count_truncated,
    mean_output,
    parse_class,
    predict_most_frequent,
    prediction_record,
    predictions_of,
)

_SCORES: Mapping[str, Callable[[Sequence[str], Sequence[str]], float]] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "matthews": matthews,
}

USUAL_SCORES = tuple(_SCORES)
"""Those of a user's table. The first one picks the epoch."""


@dataclass(frozen=True, kw_only=True)
class TextClassificationTask(TextTask):
    """One class of ``labels`` for a text, or for two (``pair``).

    ``spellings`` are the labels as published files write them, where that differs; the names of the labels are
    understood too. The score ``f1`` is that of the class ``positive``, by default of the second of two.
    ``class_weights`` multiply the loss of some classes. With ``fold_labels`` a label may be written in any case and
    spacing.
    """

    pipeline_method = "classify"
    score_names = ("f1", *_SCORES)
    answer_columns = AnswerColumns(columns=("id", "label", "probability"))
    predicts_one_class = True
    spells_answers = True

    spellings: tuple[str, ...] = ()
    positive: str = ""
    class_weights: Mapping[str, PositiveFloat] = field(default_factory=dict)
    fold_labels: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.name, self.labels, self.spellings)
        if len(self.labels) < 2:
            raise usage_error(f"{self.name} has {len(self.labels)} labels; a classification needs at least two.")
        if self.positive and self.positive not in self.labels:
            near = did_you_mean(self.positive, self.labels)
            raise usage_error(f"positive is {self.positive}, and {self.name} has {list_names(self.labels)}.{near}")
        if len(self.labels) > 2 and self._scores_f1 and not self.positive:
            raise usage_error(
                f"f1 is a score of one class, and {self.name} has {len(self.labels)}: name it with task.positive, or "
                "choose macro_f1."
            )
        check_weights(self.name, self.labels, self.class_weights)

    def needs(self) -> dict[str, str]:
        """The setting that ``positive`` needs, unless F1 is scored."""
        return {} if self._scores_f1 else {"positive": "task.metric=f1"}

    @property
    def _scores_f1(self) -> bool:
        return "f1" in (self.metric, *self.also)

    @property
    def positive_class(self) -> str:
        """The class whose F1 is scored."""
        return self.positive or self.labels[1]

    def weighted(self, weights: str | Mapping[Any, float], *, limit: int | None = None) -> Self:
        """The same task with weights of its classes: ``balanced``, or such as ``positive=2,negative=0.5``."""
        if weights != "balanced":
            return replace(self, class_weights=parse_weights(weights))
        gold = [str(example.label) for example in self.examples("train")[:limit]]
        return replace(self, class_weights=balance_classes(self.labels, gold))

    def read_label(self, cell: str, where: str) -> str:
        """The class that a cell names."""
        if cell not in self.labels and (self.fold_labels or varies_by_format(cell)):
            cell = fold_label(cell, self.labels)
        return parse_class(cell, self.labels, self.spellings, task=self.name, where=where)

    def encode_label(self, label: TextLabel | None) -> dict[str, Label]:
        """The index of the class."""
        return {SequenceClassification.label: IGNORE if label is None else self.labels.index(str(label))}

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """An untrained classifier."""
        weights = list_weights(self.labels, self.class_weights)
        head = SequenceClassification(encoder.hidden_size, len(self.labels), weights=weights, **self.head_settings)
        return {"class": head}

    def decode(self, example: TextExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Prediction:
        """The most probable class; the logits of windows are averaged."""
        scores = softmax(mean_output(outputs, self.output))
        by_label = dict(zip(self.labels, scores.tolist(), strict=True))
        return Prediction(self.labels[int(scores.argmax())], by_label, count_truncated(features))

    def baselines(self) -> Mapping[str, BaselineMethod[TextExample, Prediction]]:
        """The most frequent class, and logistic regression on a bag of words."""
        by_class = partial(predict_classes, weights=self.class_weights)
        return {MOST_FREQUENT: predict_most_frequent, BAG_OF_WORDS: predictions_of(by_class)}

    def describe(self, example: TextExample, prediction: Prediction) -> AnswerRecord:
        """``id``, ``label``, its ``probability``, and the ``scores`` of all classes."""
        return prediction_record(example, prediction, probability=max(prediction.scores.values()))

    def spell(self, prediction: Prediction) -> str:
        """The class as the files of the task write it."""
        label = str(prediction.label)
        return self.spellings[self.labels.index(label)] if self.spellings else label

    def score_answers(self, name: str, gold: Sequence[TextLabel], answers: Sequence[TextLabel]) -> float:
        """Accuracy, F1 of the positive class, macro F1 or Matthews' correlation."""
        classes, predicted = list(map(str, gold)), list(map(str, answers))
        if name == "f1":
            return binary_f1(classes, predicted, positive=self.positive_class)
        return _SCORES[name](classes, predicted)

    def resampling_statistic(
        self, examples: Sequence[TextExample], predictions: Sequence[Prediction], scores: Sequence[str]
    ) -> Statistic | None:
        """The scores from confusion counts, for a whole matrix of resamples at a time."""
        if not {"f1", *_SCORES}.issuperset(scores):
            return None
        gold = [str(example.label) for example in examples]
        answers = [str(prediction.label) for prediction in predictions]
        return resample_classes(gold, answers, scores, positive=self.positive_class)
