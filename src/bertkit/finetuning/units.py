"""Numbers in the unit of the files and in that of training, whose mean is near 0 and whose spread is near 1.

A model is saved in the unit of the files, so that other libraries, which know no unit, compute the same numbers.
"""

from __future__ import annotations

import copy

from bertkit.contracts import Objective
from bertkit.model import Model
from bertkit.objectives.regression import Regression
from bertkit.task_types import FileTask, RegressionTask
from bertkit.task_types.regression import NUMBERS_OF_FILES, Numbers

_MOST_UNITS = 1e4
"""Distance of the origin from 0 in units: float32 then has a thousandth of a unit."""

_LARGEST_UNIT = 1e30


def in_files_unit(model: Model, task: FileTask) -> tuple[Model, FileTask]:
    """The same model and task, with numbers in the unit of the files; ``model`` itself is not changed.

    Where float32 is too coarse for that, such as for times in seconds since 1970, the task keeps its own unit.
    """
    if not isinstance(task, RegressionTask) or task.numbers.has_scale_of(NUMBERS_OF_FILES):
        return model, task
    if abs(task.numbers.origin) > _MOST_UNITS * task.numbers.unit or task.numbers.unit > _LARGEST_UNIT:
        return model, task
    heads = {name: copy.deepcopy(head) for name, head in model.heads.items()}
    for head in heads.values():
        change_unit(head, task.numbers, NUMBERS_OF_FILES)
    return Model(model.encoder, heads), task.with_unit(NUMBERS_OF_FILES)


def change_unit(head: Objective, old: Numbers, new: Numbers) -> None:
    """Change the weights of a head that predicts numbers in the unit of ``old``, to predict them in that of ``new``."""
    assert isinstance(head, Regression)
    head.rescale(old.unit / new.unit, (old.origin - new.origin) / new.unit)
