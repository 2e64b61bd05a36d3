"""The epoch whose weights are kept."""

from __future__ import annotations

import torch

from bertkit.encoders.bert import tiny
from bertkit.finetuning.epoch_selection import DevScores, EpochSelection
from bertkit.model import Model
from bertkit.scores import UNDEFINED
from bertkit.task_types import RegressionTask


def test_the_best_epoch_is_kept_and_of_equal_ones_the_last() -> None:
    model = Model(tiny(), {})
    (weight, *_) = model.parameters()
    selection = EpochSelection()
    task = RegressionTask(name="t", metric="pearson")
    for number, score in enumerate((UNDEFINED, 0.5, 0.75, 0.75, 0.25)):
        torch.nn.init.constant_(weight, number)
        selection.add(DevScores(task=task, scores={"pearson": score}, parts=[]), model)
    assert (selection.best_epoch, len(selection.epochs)) == (4, 5)
    assert selection.restore(model).scores == {"pearson": 0.75}
    assert (weight == 3).all()


def test_the_smallest_error_is_kept() -> None:
    model, selection = Model(tiny(), {}), EpochSelection()
    task = RegressionTask(name="t", metric="mean_absolute_error")
    for score in (2.0, 0.5, 3.0):
        selection.add(DevScores(task=task, scores={"mean_absolute_error": score}, parts=[]), model)
    assert (selection.best_epoch, selection.restore(model).scores) == (2, {"mean_absolute_error": 0.5})
