"""The scores of a task on resamples of its examples, as fast as the scores allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bertkit.metrics.bootstrap import (
    RESAMPLES,
    Indices,
    Scores,
    Statistic,
    bootstrap,
    resample_classes,
    resample_means,
    resample_numbers,
)
from bertkit.task_types import FileTask, TextClassificationTask

_CLASS_SCORES = {"accuracy", "f1", "macro_f1", "matthews"}
_NUMBER_SCORES = {"pearson", "spearman"}

_SCORED_AT_MOST = 200_000
_FEWEST_RESAMPLES = 100


class Resampled(NamedTuple):
    """``scores`` by name; ``drawn`` (resamples, K) are the same on every resample, in that order."""

    scores: dict[str, float]
    drawn: Scores


def resample(task: FileTask, examples: Sequence[Any], predictions: Sequence[Any], *, seed: int = 0) -> Resampled:
    """Same number of examples and seed, same resamples.

    Classes and numbers are scored a whole matrix of resamples at a time, and so is every score that is the mean of the
    examples' own. Any other goes through ``task.score``, for large data on fewer resamples: at least 100.
    """
    scores = task.score(examples, predictions)
    statistic = _find_statistic(task, examples, predictions, scores)
    if statistic is not None:
        return Resampled(scores, bootstrap(statistic, len(examples), seed=seed))
    affordable = max(_FEWEST_RESAMPLES, min(RESAMPLES, _SCORED_AT_MOST // len(examples)))
    by_task = _score_by_task(task, examples, predictions, list(scores))
    return Resampled(scores, bootstrap(by_task, len(examples), resamples=affordable, seed=seed))


def _find_statistic(
    task: FileTask, examples: Sequence[Any], predictions: Sequence[Any], scores: dict[str, float]
) -> Statistic | None:
    names = list(scores)
    if isinstance(task, TextClassificationTask):
        gold = [example.label for example in examples]
        answers = [prediction.label for prediction in predictions]
        if _CLASS_SCORES.issuperset(names) and all(isinstance(label, str) for label in (*gold, *answers)):
            return resample_classes(gold, answers, names, positive=task.labels[1])
        if _NUMBER_SCORES.issuperset(names):
            return resample_numbers(gold, answers, names)
    own = [task.score([example], [prediction]) for example, prediction in zip(examples, predictions, strict=True)]
    if any(set(each) != set(names) for each in own):
        return None
    values = np.array([[each[name] for name in names] for each in own], dtype=np.float64)
    return resample_means(values) if np.allclose(values.mean(axis=0), list(scores.values()), atol=1e-9) else None


def _score_by_task(task: FileTask, examples: Sequence[Any], predictions: Sequence[Any], names: list[str]) -> Statistic:
    def score(indices: Indices) -> Scores:
        return np.array([score_one(row) for row in indices.tolist()])

    def score_one(places: list[int]) -> list[float]:
        found = task.score([examples[place] for place in places], [predictions[place] for place in places])
        return [found.get(name, 0.0) for name in names]

    return score
