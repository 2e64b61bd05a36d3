"""Several labels for one text or pair: each applies or not, by a threshold of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from bertkit.batch import IGNORE, Feature, Label
from bertkit.contracts import Encoder, Objective, OutputArrays
from bertkit.metrics.bootstrap import Statistic, resample_labels
from bertkit.metrics.classification import ClassScore
from bertkit.metrics.labels import macro_f1, micro_f1, score_labels, subset_accuracy
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.ranges import PositiveFloat, Share
from bertkit.task_files.labels import SEPARATORS, check_labels, fold_label, read_labels, write_labels
from bertkit.task_types.base import AnswerColumns, BaselineMethod
from bertkit.task_types.baselines import BAG_OF_WORDS, BEST_SINGLE, most_frequent, predict_labels
from bertkit.task_types.class_weights import balance_labels, check_weights, list_weights, parse_weights
from bertkit.task_types.probabilities import sigmoid
from bertkit.task_types.text_reader import TextExample, TextLabel
from bertkit.task_types.text_task import (
    Prediction,
    TextTask,
    count_truncated,
    mean_output,
    parse_class,
    predictions_of,
)
from bertkit.task_types.thresholds import EVEN, FEWEST_FOR_THRESHOLD, best_f1_threshold

_SCORES: Mapping[str, Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], float]] = {
    "micro_f1": micro_f1,
    "macro_f1": macro_f1,
    "subset_accuracy": subset_accuracy,
}


_NEXT_SIZE, _MOST_SIZES = 1.3, 30
_SCORED_TEXTS = 2_000
"""Numbers of labels (1, 2, 3, ... 2,015) that are tried for every text, and the texts that they are scored on."""


@dataclass(frozen=True, kw_only=True)
class MultiLabelTask(TextTask):
    """Which of ``labels`` apply to a text, or to a pair: none, one or several.

    A cell of the files has the labels with ``separator`` between them, or as a JSON list; ``[]`` means that none
    applies, an empty cell that the labels are not known. A label is predicted where its probability reaches its
    threshold. The weight of a label in ``class_weights`` multiplies the loss of the rows that have it. ``spellings``
    are the labels as the files write them, where that differs. With ``fold_labels`` a label may be written in any case
    and spacing.
    """

    pipeline_method = "classify"
    activation = "sigmoid"
    score_names = tuple(_SCORES)
    spells_answers = True

    metric: str = "micro_f1"
    also: tuple[str, ...] = tuple(_SCORES)
    spellings: tuple[str, ...] = ()
    class_weights: Mapping[str, PositiveFloat] = field(default_factory=dict)
    fold_labels: bool = False
    separator: str = SEPARATORS[0]
    thresholds: Mapping[str, Share] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.name, self.labels, self.spellings)
        check_weights(self.name, self.labels, self.class_weights)

    @property
    def answer_columns(self) -> AnswerColumns:
        """The labels in one cell, as the files of the task have them."""
        return AnswerColumns(columns=("id", "label"), join=partial(write_labels, separator=self.separator))

    def weighted(self, weights: str | Mapping[Any, float], *, limit: int | None = None) -> Self:
        """The same task with weights of its labels: ``balanced``, or such as ``urgent=2,spam=0.5``."""
        if weights != "balanced":
            return replace(self, class_weights=parse_weights(weights))
        gold = [_labels(example.label) for example in self.examples("train")[:limit]]
        return replace(self, class_weights=balance_labels(self.labels, gold))

    def read_label(self, cell: str, where: str) -> tuple[str, ...]:
        """The labels in a cell, each once, in the order of ``labels``."""
        names = read_labels(cell, self.separator, where)
        names = [fold_label(name, self.labels) for name in names] if self.fold_labels else names
        applying = {parse_class(name, self.labels, self.spellings, task=self.name, where=where) for name in names}
        return tuple(label for label in self.labels if label in applying)

    def encode_label(self, label: TextLabel | None) -> dict[str, Label]:
        """(L,) 1 for the labels that apply."""
        cells = [IGNORE if label is None else int(name in _labels(label)) for name in self.labels]
        return {MultiLabelClassification.label: np.array(cells, dtype=np.int64)}

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """An untrained head with a sigmoid for each label."""
        weights = list_weights(self.labels, self.class_weights)
        head = MultiLabelClassification(encoder.hidden_size, len(self.labels), weights=weights, **self.head_settings)
        return {"labels": head}

    def decode(self, example: TextExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Prediction:
        """The labels that reach their thresholds, with the probability of each; logits of windows are averaged."""
        scores = dict(zip(self.labels, sigmoid(mean_output(outputs, self.output)).tolist(), strict=True))
        return Prediction(self._reached(scores), scores, count_truncated(features))

    def calibrate(
        self, examples: Sequence[TextExample], predictions: Sequence[Prediction]
    ) -> tuple[Self, Sequence[Prediction]]:
        """Set the threshold of each label where its F1 on ``examples`` is highest.

        Labels that too few of them have share one, where the F1 of all their answers is highest: the threshold below
        the single example of a label may be so low that every text gets the label. A label that none of them has keeps
        its threshold.
        """
        gold = np.array([[name in _labels(example.label) for name in self.labels] for example in examples])
        probabilities = np.array([[each.scores[name] for name in self.labels] for each in predictions])
        counts = gold.sum(axis=0)
        rare = (counts > 0) & (counts < FEWEST_FOR_THRESHOLD)
        thresholds = dict(self.thresholds)
        for column, label in enumerate(self.labels):
            if counts[column] >= FEWEST_FOR_THRESHOLD:
                thresholds[label] = best_f1_threshold(gold[:, column], probabilities[:, column])
        if rare.any():
            shared = best_f1_threshold(gold[:, rare].ravel(), probabilities[:, rare].ravel())
            thresholds |= {label: shared for label, is_rare in zip(self.labels, rare, strict=True) if is_rare}
        task = replace(self, thresholds=thresholds)
        return task, [replace(each, label=task._reached(each.scores)) for each in predictions]

    def baselines(self) -> Mapping[str, BaselineMethod[TextExample, Prediction]]:
        """The labels that are best for every text, and a logistic regression for each label on a bag of words."""
        by_label = partial(predict_labels, labels=self.labels, weights=self.class_weights)
        return {BEST_SINGLE: self._predict_best_single, BAG_OF_WORDS: predictions_of(by_label)}

    def _predict_best_single(self, train: Sequence[TextExample], dev: Sequence[TextExample]) -> list[Prediction]:
        """The labels with the best score on train when every text gets them: the most frequent combination, or the most
        frequent labels, as many as score best."""
        gold = [_labels(example.label) for example in train]
        counts = Counter(label for labels in gold for label in labels)
        ranked = sorted(self.labels, key=lambda label: -counts[label])
        sizes = sorted({min(round(_NEXT_SIZE**step), len(ranked)) for step in range(_MOST_SIZES)})
        candidates = [most_frequent(gold), (), *(tuple(ranked[:size]) for size in sizes)]
        gold = gold[:: -(-len(gold) // _SCORED_TEXTS)]
        best = max(candidates, key=lambda labels: self.score_answers(self.metric, gold, [labels] * len(gold)))
        return [Prediction(best)] * len(dev)

    def spell(self, prediction: Prediction) -> str:
        """The labels as a cell of the files."""
        return write_labels(_labels(prediction.label), self.separator)

    def score_answers(self, name: str, gold: Sequence[TextLabel], answers: Sequence[TextLabel]) -> float:
        """F1 over all labels, mean F1 of the labels, or the share of examples with all labels right."""
        return _SCORES[name](list(map(_labels, gold)), list(map(_labels, answers)))

    def resampling_statistic(
        self, examples: Sequence[TextExample], predictions: Sequence[Prediction], scores: Sequence[str]
    ) -> Statistic | None:
        """The scores from counts of labels, for a whole matrix of resamples at a time."""
        if not _SCORES.keys() >= set(scores):
            return None
        gold = [_labels(example.label) for example in examples]
        return resample_labels(gold, [_labels(prediction.label) for prediction in predictions], scores)

    def score_parts(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> list[ClassScore]:
        """Precision, recall and F1 of each label."""
        gold = [_labels(example.label) for example in examples]
        return score_labels(gold, [_labels(prediction.label) for prediction in predictions], labels=self.labels)

    def _reached(self, scores: Mapping[str, float]) -> tuple[str, ...]:
        return tuple(label for label in self.labels if scores[label] >= self.thresholds.get(label, EVEN))


def _labels(answer: TextLabel | None) -> tuple[str, ...]:
    assert isinstance(answer, tuple | list)
    return tuple(answer)
