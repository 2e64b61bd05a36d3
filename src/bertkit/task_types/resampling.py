"""The scores of a task on bootstrap resamples of its examples, vectorised where the scores allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bertkit.contracts import E, P
from bertkit.metrics.bootstrap import (
    RESAMPLES,
    Indices,
    Scores,
    Statistic,
    bootstrap,
    resample_means,
)
from bertkit.scores import UNDEFINED
from bertkit.task_types.base import FileTask

_MAX_SCORED_EXAMPLES, _MIN_RESAMPLES = 200_000, 100
"""Scores that are not vectorised are computed for about this many examples in all, in at least 100 resamples."""


class Resampled(NamedTuple):
    """``scores`` by name; ``resampled`` (R, K) has the same K scores on every one of R resamples."""

    scores: dict[str, float]
    resampled: Scores


def resample(task: FileTask[E, P], examples: Sequence[E], predictions: Sequence[P]) -> Resampled:
    """The scores on all examples and on resamples, which depend on the number of examples alone.

    Scores of classes, numbers and entities, and scores that are the mean over examples, are computed for many resamples
    at once. Any other is computed by ``task.score`` on one resample at a time, and on fewer of them for large data.
    """
    scores = task.score(examples, predictions)
    statistic = _find_statistic(task, examples, predictions, scores)
    if statistic is not None:
        return Resampled(scores, bootstrap(statistic, len(examples)))
    affordable = max(_MIN_RESAMPLES, min(RESAMPLES, _MAX_SCORED_EXAMPLES // len(examples)))
    by_task = _score_by_task(task, examples, predictions, list(scores))
    return Resampled(scores, bootstrap(by_task, len(examples), resamples=affordable))


def _find_statistic(
    task: FileTask[E, P], examples: Sequence[E], predictions: Sequence[P], scores: dict[str, float]
) -> Statistic | None:
    names = list(scores)
    statistic = task.resampling_statistic(examples, predictions, names)
    if statistic is not None and _agrees(statistic, scores, len(examples)):
        return statistic
    own = [task.score([example], [prediction]) for example, prediction in zip(examples, predictions, strict=True)]
    # SQuAD 2.0 has scores of the questions without an answer: other questions have none.
    values = np.array([[each.get(name, UNDEFINED) for name in names] for each in own], dtype=np.float64)
    means = resample_means(values)
    return means if _agrees(means, scores, len(examples)) else None


def _agrees(statistic: Statistic, scores: dict[str, float], size: int) -> bool:
    """Whether a statistic gives these scores on all examples; a user's class of tasks may define them otherwise."""
    everything = statistic(np.arange(size)[None])
    return np.allclose(everything, list(scores.values()), rtol=0, atol=1e-9, equal_nan=True)


def _score_by_task(
    task: FileTask[E, P], examples: Sequence[E], predictions: Sequence[P], names: list[str]
) -> Statistic:
    def score(indices: Indices) -> Scores:
        return np.array([score_one(row) for row in indices.tolist()])

    def score_one(places: list[int]) -> list[float]:
        found = task.score([examples[place] for place in places], [predictions[place] for place in places])
        return [found.get(name, UNDEFINED) for name in names]

    return score
