"""Which epoch of a restart is kept: the one with the best score on dev."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from bertkit.metrics.classification import ClassScore
from bertkit.model import Model
from bertkit.scores import Score, rank_score
from bertkit.task_types import FileTask


@dataclass(frozen=True, kw_only=True)
class DevScores:
    """The ``scores`` on dev after an epoch, those of its ``parts``, and the task with thresholds calibrated on dev."""

    task: FileTask
    scores: dict[str, Score]
    parts: list[ClassScore]


@dataclass(slots=True)
class EpochSelection:
    """The dev scores of every epoch, and the weights after the best one (of equal epochs the last).

    ``best_epoch`` counts from 1; it is 0, without ``best`` and weights, before the end of the first epoch.
    """

    epochs: list[dict[str, Score]] = field(default_factory=list)
    best_epoch: int = 0
    best: DevScores | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    def add(self, found: DevScores, model: Model) -> None:
        """Note the scores of the next epoch, and copy the weights if it is the best so far."""
        metric = found.task.metric
        self.epochs.append(found.scores)
        if rank_score(metric, found.scores[metric]) >= max(rank_score(metric, each[metric]) for each in self.epochs):
            self.best, self.best_epoch = found, len(self.epochs)
            self.weights = {name: value.clone() for name, value in model.state_dict().items()}

    def restore(self, model: Model) -> DevScores:
        """Set ``model`` back to the weights of the best epoch, and return its scores."""
        assert self.best is not None, "an epoch has ended"
        model.load_state_dict(self.weights)
        return self.best
