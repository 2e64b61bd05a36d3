"""Weights of classes in the loss, by the name of the class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from bertkit.errors import did_you_mean, usage_error
from bertkit.formats.cells import spell_cell, to_json
from bertkit.task_files.labels import list_labels


@runtime_checkable
class Weightable(Protocol):
    """A task whose classes can be weighted in the loss."""

    @property
    def class_weights(self) -> Mapping[str, float]:
        """The weights by name; none are equal weights."""

    def weighted(self, weights: str | Mapping[Any, float], *, limit: int | None = None) -> Self:
        """The same task with weights of its classes: ``balanced``, such as ``positive=2,negative=0.5``, or by name.

        Balanced are the first ``limit`` examples of train, those that are trained on.
        """


def parse_weights(given: str | Mapping[Any, float]) -> dict[str, float]:
    """Weights by name, from ``positive=2,negative=0.5`` or from a mapping, whose names may be the numbers and truth
    values of a table in memory."""
    if not isinstance(given, str):
        return {spell_cell(to_json(name)): weight for name, weight in given.items()}
    weights: dict[str, float] = {}
    for part in given.split(","):
        name, equals, number = part.rpartition("=")
        if name.strip() in weights:
            raise usage_error(f'class weights "{given}": "{name.strip()}" has two.')
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise usage_error(f'class weights "{given}": expected "balanced" or NAME=NUMBER,NAME=NUMBER.')
    return weights


def check_weights(task: str, labels: Sequence[str], weights: Mapping[str, float]) -> None:
    """Raise an error for a weight of an unknown class."""
    for name in weights:
        if name not in labels:
            known = list_labels(labels) or "none"
            raise usage_error(f'no class "{name}" to weigh. {task} knows: {known}.{did_you_mean(name, labels)}')


def list_weights(labels: Sequence[str], weights: Mapping[str, float]) -> list[float] | None:
    """A weight for every label, 1 where none is given; None without any weights."""
    return [weights.get(label, 1.0) for label in labels] if weights else None


def balance_classes(labels: Sequence[str], answers: Iterable[str]) -> dict[str, float]:
    """Rows / (classes x rows of the class), as in scikit-learn: all classes have the same total weight over train."""
    counts = Counter(answers)
    return {label: counts.total() / (len(counts) * counts[label]) for label in labels if counts[label]}


def balance_labels(labels: Sequence[str], answers: Sequence[Collection[str]]) -> dict[str, float]:
    """Rows without the label / rows with it: both have the same total weight for every label."""
    counts = Counter(label for answer in answers for label in answer)
    rows = len(answers)
    return {label: (rows - counts[label]) / counts[label] for label in labels if 0 < counts[label] < rows}
