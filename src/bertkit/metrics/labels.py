"""Scores of predicted sets of labels: micro and macro F1, exact match of whole sets; by scikit-learn.

Labels are strings, and each occurs at most once in a set. Where a score is undefined it is 0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from bertkit.metrics.classification import ClassScore, require_pairs, tabulate_scores
from bertkit.optional import load

Sets = Sequence[Collection[str]]


def micro_f1(gold: Sets, predicted: Sets) -> float:
    """F1 of all decisions (example, label) counted together."""
    return _f1(gold, predicted, average="micro")


def macro_f1(gold: Sets, predicted: Sets) -> float:
    """The unweighted mean of the F1 of all labels that occur in ``gold`` or ``predicted``."""
    return _f1(gold, predicted, average="macro")


def subset_accuracy(gold: Sets, predicted: Sets) -> float:
    """The share of examples whose predicted set equals the gold set."""
    require_pairs(gold, predicted)
    return float(load("sklearn.metrics").accuracy_score(*_indicators(gold, predicted, _occurring(gold, predicted))))


def score_labels(gold: Sets, predicted: Sets, *, labels: Sequence[str]) -> list[ClassScore]:
    """Precision, recall and F1 of every label, in the order of ``labels``, which hold all that occur."""
    require_pairs(gold, predicted)
    sides = _indicators(gold, predicted, labels)
    score = load("sklearn.metrics").precision_recall_fscore_support
    columns = score(*sides, labels=range(len(labels)), zero_division=0)
    return tabulate_scores(labels, columns)


def _f1(gold: Sets, predicted: Sets, *, average: str) -> float:
    require_pairs(gold, predicted)
    labels = _occurring(gold, predicted)
    if not labels:
        return 0.0
    sides = _indicators(gold, predicted, labels)
    return float(load("sklearn.metrics").f1_score(*sides, labels=range(len(labels)), average=average, zero_division=0))


def _occurring(gold: Sets, predicted: Sets) -> list[str]:
    return sorted({label for labels in (*gold, *predicted) for label in labels})


def _indicators(gold: Sets, predicted: Sets, labels: Sequence[str]) -> list[Any]:
    """Both sides as sparse 0/1 matrices (examples, labels + 2).

    The last two columns are empty: scikit-learn takes a matrix of one column for classes 0 and 1, not for one label.
    """
    binarizer = load("sklearn.preprocessing").MultiLabelBinarizer(classes=range(len(labels) + 2), sparse_output=True)
    number_of = {label: number for number, label in enumerate(labels)}
    return [
        binarizer.fit_transform([[number_of[label] for label in labels] for labels in side])
        for side in (gold, predicted)
    ]
