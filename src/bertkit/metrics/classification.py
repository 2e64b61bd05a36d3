"""Scores of chosen classes: right answers, F1, the Matthews correlation, the confusion matrix.

Classes are strings. Where a score is undefined (no such class, one constant answer) it is 0.0, as the
official scripts of GLUE have it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, matthews_corrcoef

from bertkit.errors import data_error


def accuracy(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of right answers."""
    require_pairs(gold, predicted)
    return float(accuracy_score(gold, predicted))


def binary_f1(gold: Sequence[str], predicted: Sequence[str], *, positive: str) -> float:
    """Harmonic mean of the precision and the recall of one class."""
    require_pairs(gold, predicted)
    sought = [right == positive for right in gold]
    found = [answer == positive for answer in predicted]
    return float(f1_score(sought, found, zero_division=0.0))


def macro_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The mean of every class's F1, small classes weighing as much as large ones."""
    require_pairs(gold, predicted)
    return float(f1_score(gold, predicted, average="macro", zero_division=0.0))


def matthews(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """Correlation of two labellings, from -1 to 1, for any number of classes (Gorodkin 2004).

    0.0 when either labelling is constant.
    """
    require_pairs(gold, predicted)
    if len(set(gold)) == 1 or len(set(predicted)) == 1:
        return 0.0
    return float(matthews_corrcoef(gold, predicted))


def confusion(gold: Sequence[str], predicted: Sequence[str], *, classes: Sequence[str]) -> list[list[int]]:
    """Counts by gold class (rows) and predicted class (columns), both in the order of ``classes``."""
    require_pairs(gold, predicted)
    counts: list[list[int]] = confusion_matrix(gold, predicted, labels=list(classes)).tolist()
    return counts


def require_pairs(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Scores need at least one example, and one prediction for each."""
    assert len(gold) == len(predicted), f"{len(gold)} gold answers, {len(predicted)} predictions"
    if not gold:
        raise data_error("there is nothing to score: no example has a gold label.")
