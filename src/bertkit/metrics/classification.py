"""Scores of predicted classes: accuracy, F1, Matthews correlation, confusion matrix; by scikit-learn.

Classes are strings. Where a score is undefined (a class that never occurs, Matthews correlation of constant
predictions) it is 0.0, as in the official scripts of GLUE.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import data_error
from bertkit.optional import load


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Precision, recall and F1 of one class or label, from 0 to 1, and ``support``, its number of gold examples."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


def accuracy(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of correct predictions."""
    with _checked(gold, predicted) as metrics:
        return float(metrics.accuracy_score(gold, predicted))


def binary_f1(gold: Sequence[str], predicted: Sequence[str], *, positive: str) -> float:
    """F1 of the class ``positive``; 0.0 if it occurs neither in ``gold`` nor in ``predicted``."""
    with _checked(gold, predicted) as metrics:
        return float(metrics.f1_score(gold, predicted, labels=[positive], average="macro", zero_division=0))


def macro_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The unweighted mean of the F1 of all classes that occur in ``gold`` or ``predicted``."""
    with _checked(gold, predicted) as metrics:
        return float(metrics.f1_score(gold, predicted, average="macro", zero_division=0))


def matthews(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """Matthews correlation of any number of classes (Gorodkin 2004), -1 to 1; 0.0 when either side is constant."""
    with _checked(gold, predicted) as metrics:
        return float(metrics.matthews_corrcoef(gold, predicted))


def score_classes(gold: Sequence[str], predicted: Sequence[str], *, classes: Sequence[str]) -> list[ClassScore]:
    """Precision, recall and F1 of every class, in the order of ``classes``."""
    with _checked(gold, predicted) as metrics:
        columns = metrics.precision_recall_fscore_support(gold, predicted, labels=list(classes), zero_division=0)
    return tabulate_scores(classes, columns)


def confusion(gold: Sequence[str], predicted: Sequence[str], *, classes: Sequence[str]) -> list[list[int]]:
    """Counts by gold class (rows) and predicted class (columns), both in the order of ``classes``."""
    assert {*gold, *predicted} <= {*classes}, "a label is not among the classes"
    with _checked(gold, predicted) as metrics:
        counts: list[list[int]] = metrics.confusion_matrix(gold, predicted, labels=list(classes)).tolist()
    return counts


def tabulate_scores(names: Sequence[str], columns: Sequence[NDArray[np.generic]]) -> list[ClassScore]:
    """The four columns of scikit-learn's ``precision_recall_fscore_support`` as one record per class."""
    precision, recall, f1, support = (column.tolist() for column in columns)
    # The support is a column of floats where a class does not occur.
    return [ClassScore(*row) for row in zip(names, precision, recall, f1, map(int, support), strict=True)]


def require_pairs(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Check that there is at least one example, and one prediction for each."""
    assert len(gold) == len(predicted), f"{len(gold)} gold labels, {len(predicted)} predictions"
    if not gold:
        raise data_error("there is nothing to score: no example has a gold label.")


@contextmanager
def _checked(gold: Sequence[str], predicted: Sequence[str]) -> Iterator[ModuleType]:
    """Check the arguments, and give scikit-learn's metrics, without warnings of very few or very many classes."""
    require_pairs(gold, predicted)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        yield load("sklearn.metrics")
