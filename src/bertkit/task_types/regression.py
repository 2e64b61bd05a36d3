"""A number for a text or for a pair of texts, such as their similarity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np

from bertkit.batch import IGNORE, Feature, Label
from bertkit.contracts import Encoder, Objective, OutputArrays
from bertkit.errors import data_error
from bertkit.formats.cells import parse_number
from bertkit.metrics.bootstrap import Statistic, resample_numbers
from bertkit.metrics.regression import mean_absolute_error, pearson, spearman
from bertkit.objectives.regression import Regression
from bertkit.ranges import LARGEST_MAGNITUDE, FiniteFloat, Range, check_ranges
from bertkit.task_types.base import BaselineMethod
from bertkit.task_types.baselines import BAG_OF_WORDS, MEAN, predict_mean, predict_numbers
from bertkit.task_types.text_reader import TextExample, TextLabel
from bertkit.task_types.text_task import (
    Prediction,
    TextTask,
    as_numbers,
    count_truncated,
    mean_output,
    predictions_of,
)


def as_label(number: float | None) -> float:
    """A number to learn as a label: -100, which would count as no label, becomes the number next to it."""
    if number is None:
        return float(IGNORE)
    return _NEAREST_TO_IGNORE if np.float32(number) == IGNORE else number


_NEAREST_TO_IGNORE = float(np.nextafter(np.float32(IGNORE), np.float32(0)))
"""What a number is trained as that is -100 in float32, as labels are, and would otherwise count as no label."""

_SCORES: Mapping[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "mean_absolute_error": mean_absolute_error,
}

USUAL_SCORES = tuple(_SCORES)
"""Those of a user's table. The first one picks the epoch."""

SMALLEST_UNIT = 1 / LARGEST_MAGNITUDE


def check_number(number: float, cell: str, where: str) -> None:
    """Raise a data error for a number that has no finite square; ``cell`` and ``where`` are for the message."""
    if not abs(number) <= LARGEST_MAGNITUDE:
        kind = "too large" if math.isfinite(number) else "not a finite number"
        raise data_error(f"{where}: {cell} is {kind}; it must be from -1e100 to 1e100.")


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of a task are between ``lowest`` and ``highest``; the model learns (number - origin) / unit."""

    lowest: FiniteFloat | None = None
    highest: FiniteFloat | None = None
    origin: FiniteFloat = 0.0
    unit: Annotated[float, Range(SMALLEST_UNIT, LARGEST_MAGNITUDE)] = 1.0

    def __post_init__(self) -> None:
        check_ranges(self)

    def has_scale_of(self, other: Numbers) -> bool:
        """Whether a model that learns these numbers gives those of ``other`` too."""
        return (self.origin, self.unit) == (other.origin, other.unit)


NUMBERS_OF_FILES = Numbers()
"""As they are in the files."""


def read_number(cell: str, where: str, numbers: Numbers) -> float:
    """The number in a cell; one that is not finite, or out of the bounds of ``numbers``, is a data error."""
    try:
        number = parse_number(cell)
    except ValueError as error:
        raise data_error(f'{where}: "{cell}" is not a number.') from error
    lowest, highest = numbers.lowest, numbers.highest
    check_number(number, cell, where)
    if (lowest is not None and number < lowest) or (highest is not None and number > highest):
        raise data_error(f"{where}: {cell} is outside {lowest} to {highest}.")
    return number


@dataclass(frozen=True, kw_only=True)
class RegressionTask(TextTask):
    """A number for a text, or for two (``pair``)."""

    pipeline_method = "predict"
    output = "value"
    activation = "none"
    score_names = tuple(_SCORES)

    numbers: Numbers = field(default_factory=Numbers)

    def read_label(self, cell: str, where: str) -> float:
        """The number in a cell; one that is not finite or out of bounds is an error."""
        return read_number(cell, where, self.numbers)

    def with_unit(self, unit: Numbers) -> Self:
        """The same task, whose model learns numbers in the origin and the unit of ``unit``."""
        return replace(self, numbers=replace(self.numbers, origin=unit.origin, unit=unit.unit))

    def encode_label(self, label: TextLabel | None) -> dict[str, Label]:
        """The number on the scale that the model learns."""
        assert label is None or isinstance(label, int | float)
        scaled = None if label is None else (float(label) - self.numbers.origin) / self.numbers.unit
        return {Regression.label: as_label(scaled)}

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """An untrained regressor."""
        return {"number": Regression(encoder.hidden_size, **self.head_settings)}

    def decode(self, example: TextExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Prediction:
        """The number on the scale of the files; the values of windows are averaged."""
        value = float(mean_output(outputs, self.output))
        return Prediction(value * self.numbers.unit + self.numbers.origin, num_truncated=count_truncated(features))

    def baselines(self) -> Mapping[str, BaselineMethod[TextExample, Prediction]]:
        """Ridge regression on a bag of words, and the mean where the task has a score of it: correlations with a
        constant do not exist."""
        mean = {MEAN: predictions_of(predict_mean)} if "mean_absolute_error" in (self.metric, *self.also) else {}
        return {**mean, BAG_OF_WORDS: predictions_of(predict_numbers)}

    def spell(self, prediction: Prediction) -> str:
        """The number within its bounds, with three decimals."""
        lowest, highest = self.numbers.lowest, self.numbers.highest
        assert isinstance(prediction.label, float)
        number = prediction.label if lowest is None else max(prediction.label, lowest)
        return f"{number if highest is None else min(number, highest):.3f}"

    def score_answers(self, name: str, gold: Sequence[TextLabel], answers: Sequence[TextLabel]) -> float:
        """Pearson's or Spearman's correlation, or the mean absolute error in the unit of the files."""
        return _SCORES[name](as_numbers(gold), as_numbers(answers))

    def resampling_statistic(
        self, examples: Sequence[TextExample], predictions: Sequence[Prediction], scores: Sequence[str]
    ) -> Statistic | None:
        """The scores, for a whole matrix of resamples at a time."""
        gold = as_numbers([example.label for example in examples])
        answers = as_numbers([prediction.label for prediction in predictions])
        return resample_numbers(gold, answers, scores) if _SCORES.keys() >= set(scores) else None
