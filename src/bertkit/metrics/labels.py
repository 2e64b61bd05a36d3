"""Scores of sets of labels: F1 over all decisions, F1 by label, and whole sets.

Labels are strings, every set holds each once. Where a score is undefined it is 0.0. The tests hold these functions to
scikit-learn's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from statistics import fmean

from bertkit.metrics.classification import ClassScore, require_pairs

Sets = Sequence[Collection[str]]


def micro_f1(gold: Sets, predicted: Sets) -> float:
    """F1 of all decisions together: labels that are told and right."""
    right, occurrences = _count(gold, predicted)
    return 2 * right.total() / occurrences.total() if occurrences else 0.0


def macro_f1(gold: Sets, predicted: Sets) -> float:
    """The mean F1 of all labels that occur, rare ones weighing as much as common ones."""
    right, occurrences = _count(gold, predicted)
    return fmean(2 * right[label] / count for label, count in occurrences.items()) if occurrences else 0.0


def subset_accuracy(gold: Sets, predicted: Sets) -> float:
    """The share of examples whose labels are all right, and none too many."""
    require_pairs(gold, predicted)
    return fmean(set(each) == set(told) for each, told in zip(gold, predicted, strict=True))


def score_labels(gold: Sets, predicted: Sets, *, labels: Sequence[str]) -> list[ClassScore]:
    """Precision, recall and F1 of every label."""
    right, occurrences = _count(gold, predicted)
    sought = Counter(label for each in gold for label in each)
    return [
        ClassScore(
            label,
            precision=right[label] / max(1, occurrences[label] - sought[label]),
            recall=right[label] / max(1, sought[label]),
            f1=2 * right[label] / max(1, occurrences[label]),
            support=sought[label],
        )
        for label in labels
    ]


def _count(gold: Sets, predicted: Sets) -> tuple[Counter[str], Counter[str]]:
    """By label: how often it is told rightly, and how often it is sought plus how often it is told."""
    require_pairs(gold, predicted)
    right: Counter[str] = Counter()
    occurrences: Counter[str] = Counter()
    for sought, told in zip(gold, predicted, strict=True):
        right.update(set(sought) & set(told))
        occurrences.update(sought)
        occurrences.update(told)
    return right, occurrences
