"""Scores of chosen classes: right answers, F1, the Matthews correlation, the confusion matrix.

Classes are strings. Where a score is undefined (no such class, one constant answer) it is 0.0, as the
official scripts of GLUE have it. The tests hold these functions to scikit-learn's; they do not call it, because
importing it takes a second, which every command would pay.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from bertkit.errors import data_error


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class: the share of its answers that are right, and of its ``support`` examples that are found."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


def accuracy(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of right answers."""
    require_pairs(gold, predicted)
    return _count_right(gold, predicted).total() / len(gold)


def binary_f1(gold: Sequence[str], predicted: Sequence[str], *, positive: str) -> float:
    """Harmonic mean of the precision and the recall of one class."""
    return _f1_of_classes(gold, predicted).get(positive, 0.0)


def macro_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The mean F1 of all classes that occur, small ones weighing as much as large ones."""
    return fmean(_f1_of_classes(gold, predicted).values())


def matthews(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """Correlation of two labellings, from -1 to 1, for any number of classes (Gorodkin 2004).

    0.0 when either labelling is constant.
    """
    require_pairs(gold, predicted)
    sought, found, size = Counter(gold), Counter(predicted), len(gold)
    covariance = size * _count_right(gold, predicted).total() - sum(sought[name] * found[name] for name in sought)
    of_gold = size**2 - sum(count**2 for count in sought.values())
    of_predicted = size**2 - sum(count**2 for count in found.values())
    return covariance / math.sqrt(of_gold * of_predicted) if of_gold and of_predicted else 0.0


def score_classes(gold: Sequence[str], predicted: Sequence[str], *, classes: Sequence[str]) -> list[ClassScore]:
    """Precision, recall and F1 of every class."""
    f1, right = _f1_of_classes(gold, predicted), _count_right(gold, predicted)
    sought, found = Counter(gold), Counter(predicted)
    return [
        ClassScore(
            name,
            precision=right[name] / max(1, found[name]),
            recall=right[name] / max(1, sought[name]),
            f1=f1.get(name, 0.0),
            support=sought[name],
        )
        for name in classes
    ]


def confusion(gold: Sequence[str], predicted: Sequence[str], *, classes: Sequence[str]) -> list[list[int]]:
    """Counts by gold class (rows) and predicted class (columns), both in the order of ``classes``."""
    require_pairs(gold, predicted)
    places = {name: place for place, name in enumerate(classes)}
    matrix = [[0] * len(classes) for _ in classes]
    for right, answer in zip(gold, predicted, strict=True):
        matrix[places[right]][places[answer]] += 1
    return matrix


def require_pairs(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Scores need at least one example, and one prediction for each."""
    assert len(gold) == len(predicted), f"{len(gold)} gold answers, {len(predicted)} predictions"
    if not gold:
        raise data_error("there is nothing to score: no example has a gold label.")


def _f1_of_classes(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """2 right / (sought + found) of every class that is sought or found."""
    require_pairs(gold, predicted)
    right, occurrences = _count_right(gold, predicted), Counter(gold) + Counter(predicted)
    return {name: 2 * right[name] / count for name, count in occurrences.items()}


def _count_right(gold: Sequence[str], predicted: Sequence[str]) -> Counter[str]:
    return Counter(right for right, answer in zip(gold, predicted, strict=True) if right == answer)
