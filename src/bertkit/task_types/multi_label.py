"""Several labels for one text or pair: a yes or no for each, by a threshold of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Feature, Label
from bertkit.contracts import Encoder, Objective
from bertkit.metrics.classification import ClassScore
from bertkit.metrics.labels import macro_f1, micro_f1, score_labels, subset_accuracy
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.task_types.class_weights import balance_labels, spread_weights
from bertkit.task_types.labels import read_labels, write_labels
from bertkit.task_types.text_classification import Prediction, TextClassificationTask, TextExample, mean_output

_EVEN = 0.5
"""The threshold of a label before any is set."""


@dataclass(frozen=True, kw_only=True)
class MultiLabelTask(TextClassificationTask):
    """Which of ``labels`` apply to a text, or to a pair: none, one or several.

    A cell of the files names them with ``separator`` between them, or is a JSON list; ``[]`` says that none applies,
    an empty cell that nobody knows. A label is told where its probability reaches its threshold. The weight of a label
    multiplies the loss of the rows that have it.
    """

    shape: ClassVar[str] = "labels"

    metric: str = "micro_f1"
    also: tuple[str, ...] = ("macro_f1", "subset_accuracy")
    separator: str = ";"
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """A fresh head with a sigmoid for each label."""
        weights = spread_weights(self.labels, self.class_weights)
        return {"labels": MultiLabelClassification(encoder.hidden_size, len(self.labels), weights=weights)}

    def decode(
        self, example: TextExample, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]
    ) -> Prediction:
        """The labels that reach their thresholds, with the probability of every one; windows speak with their mean."""
        scores = _sigmoid(mean_output(outputs, "logits"))
        named = dict(zip(self.labels, scores.tolist(), strict=True))
        return Prediction(self._told(named), named, sum(feature.num_truncated for feature in features))

    def calibrate(self, examples: Sequence[Any], predictions: Sequence[Any]) -> tuple[Self, Sequence[Any]]:
        """Set each threshold where the F1 of its label is highest on ``examples``.

        A label that none of them has keeps its threshold.
        """
        thresholds = dict(self.thresholds)
        for label in self.labels:
            gold = np.array([label in example.label for example in examples])
            if gold.any():
                thresholds[label] = _best_threshold(gold, np.array([each.scores[label] for each in predictions]))
        task = replace(self, thresholds=thresholds)
        return task, [replace(each, label=task._told(each.scores)) for each in predictions]

    def score_parts(self, examples: Iterable[Any], predictions: Iterable[Any]) -> list[ClassScore]:
        """Precision, recall and F1 of each label."""
        gold = [example.label for example in examples]
        return score_labels(gold, [prediction.label for prediction in predictions], labels=self.labels)

    def spell(self, prediction: Prediction) -> str:
        """The labels as a cell of the files."""
        assert isinstance(prediction.label, tuple)
        return write_labels(prediction.label, self.separator)

    def _told(self, scores: Mapping[str, float]) -> tuple[str, ...]:
        return tuple(label for label in self.labels if scores[label] >= self.thresholds.get(label, _EVEN))

    def _balance(self, answers: Sequence[Any]) -> dict[str, float]:
        return balance_labels(self.labels, answers)

    def _read_label(self, cell: str, where: str) -> tuple[str, ...]:
        """Each once, in the order of ``labels``."""
        applying = {self._class(name, where) for name in read_labels(cell, self.separator, where)}
        return tuple(label for label in self.labels if label in applying)

    def _encode_label(self, label: Any) -> dict[str, Label]:
        cells = [IGNORE if label is None else int(name in label) for name in self.labels]
        return {"labels": np.array(cells, dtype=np.int64)}

    def _score(self, name: str, gold: list[Any], answers: list[Any]) -> float:
        return _SCORES[name](gold, answers)


_SCORES: Mapping[str, Callable[[list[Any], list[Any]], float]] = {
    "micro_f1": micro_f1,
    "macro_f1": macro_f1,
    "subset_accuracy": subset_accuracy,
}


def _sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = 0.5 * (1.0 + np.tanh(0.5 * logits))
    return shares


def _best_threshold(gold: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Half way between two neighbouring scores, where F1 is highest; of several such places the nearest to one half."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    told = np.arange(1, len(ranked) + 1)
    f1 = 2 * np.cumsum(gold[order]) / (told + gold.sum())
    below = np.append(ranked[1:], 0.0)
    apart = ranked > below  # a threshold cannot part equal scores
    middles = (ranked + below)[apart] / 2
    best = middles[f1[apart] >= f1[apart].max() - 1e-12]
    return float(best[np.abs(best - _EVEN).argmin()])
