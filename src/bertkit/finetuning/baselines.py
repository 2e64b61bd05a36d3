"""The trivial alternatives to a fine-tuned model, fitted and scored on the same data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.contracts import Example
from bertkit.task_types import FileTask
from bertkit.task_types.baselines import BAG_OF_WORDS


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """``scores`` on dev of a trivial method that was fitted on the training examples, and the seconds it took."""

    name: str
    scores: dict[str, float]
    seconds: float


def fit_baselines(task: FileTask, train: Sequence[Example], dev: Sequence[Example]) -> list[Baseline]:
    """Every trivial method of the task; none for a task that has none."""
    found = []
    for name, predict in task.baselines().items():
        begin = time.monotonic()
        scores = task.score(dev, predict(train, dev))
        found.append(Baseline(name=name, scores=scores, seconds=round(time.monotonic() - begin, 2)))
    return found


def describe_baselines(metric: str, baselines: Sequence[Baseline]) -> str:
    """The scores to beat, in a sentence."""
    return "to beat: " + ", ".join(f"{each.name} {each.scores[metric]:.4f}" for each in baselines)


def verdict(metric: str, score: float, baselines: Sequence[Baseline]) -> str:
    """A sentence that compares a model's ``score`` with the best of its baselines; empty without any."""
    if not baselines:
        return ""
    best = max(baselines, key=lambda each: each.scores[metric])
    compared = f"{metric}: {best.name} {best.scores[metric]:.4f}, this model {score:.4f}"
    if score > best.scores[metric]:
        return f"{compared}: the model is worth {score - best.scores[metric]:.4f} more"
    advice = (
        "pre-train longer, take a larger or published model, a higher --lr, or more --epochs"
        if best.name == BAG_OF_WORDS
        else "it has learned nothing yet: more training examples, a higher --lr, or more --epochs"
    )
    return f"{compared}: the model is not worth its cost yet. What helps: {advice}"
