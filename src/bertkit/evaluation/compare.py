"""Two models on the same examples: how far their scores differ, and whether that is significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.contracts import E, P
from bertkit.errors import count_of, usage_error
from bertkit.evaluation.report import ScoreInterval, gold_and_predicted_classes, with_interval
from bertkit.metrics.bootstrap import Scores, p_value, percentile_interval
from bertkit.metrics.comparison import mcnemar as mcnemar_p
from bertkit.results import Result
from bertkit.scores import gain_of, is_defined
from bertkit.task_types import ExampleReport, FileTask, type_name
from bertkit.task_types.resampling import resample

SIGNIFICANCE = 0.05
"""A difference with a smaller p value is reported as more than chance."""

_MAX_DISAGREEMENTS = 10


@dataclass(frozen=True, kw_only=True)
class ScoreDifference:
    """One score of both models; ``difference`` is second minus first, ``p`` two-sided from a paired bootstrap.

    For the accuracy of classes ``p`` is at least that of McNemar's exact test, which few examples do not mislead.
    """

    first: ScoreInterval
    second: ScoreInterval
    difference: ScoreInterval
    p: float


@dataclass(frozen=True, kw_only=True)
class McNemar:
    """How many examples only one of the models predicts correctly, and the p value of McNemar's exact test."""

    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """An example for which the models predict different answers."""

    id: str
    text: str
    gold: str
    first: str
    second: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Result):
    """Two models on the same examples, with paired resamples; ``mcnemar`` is None where predictions are not classes.

    ``disagreements`` begins with the examples where the errors of the two differ most.
    """

    first: str
    second: str
    task: str
    split: str
    metric: str
    examples: int
    resamples: int
    scores: dict[str, ScoreDifference]
    disagreements: list[Disagreement]
    mcnemar: McNemar | None = None

    def __repr__(self) -> str:
        found = self.scores[self.metric]
        figures = (
            f"{self.metric} {found.difference.value:+.4f}, p = {found.p:.3f}; {count_of(self.examples, 'example')}"
        )
        return f"Comparison({self.second} against {self.first}: {figures})"

    def sentence(self) -> str:
        """Which model is better by the task's metric, if the difference is significant."""
        found = self.scores[self.metric]
        if not is_defined(found.p) or not is_defined(found.difference.value):
            sides = ((self.first, found.first), (self.second, found.second))
            undefined = [name for name, score in sides if not is_defined(score.value)] or ["their resamples"]
            return (
                f"{self.first} and {self.second} cannot be compared: {self.metric} is undefined for "
                f"{' and for '.join(undefined)}: all predictions, or all gold answers, are equal."
            )
        value, low, high = found.difference.value, found.difference.low, found.difference.high
        better, worse, significant = self.second, self.first, found.p < SIGNIFICANCE
        gain = gain_of(self.metric, found.second.value, found.first.value)
        if significant and gain < 0:  # the figures are those of the better model minus the worse
            better, worse, value, low, high = worse, better, -value, -high, -low
        figures = f"{self.metric} {value:+.4f} ({low:+.4f} to {high:+.4f}, p = {found.p:.3f})"
        if significant:
            return f"{better} is better than {worse}, by more than chance: {figures}."
        return f"No difference larger than chance between {self.first} and {self.second}: {figures}."


def require_comparable(first: FileTask, second: FileTask, names: tuple[str, str]) -> None:
    """Raise a usage error, naming the difference, unless models for the two tasks predict answers of the same kind."""
    one, other = _properties(first), _properties(second)
    for name, value in one.items():
        if value != other[name]:
            raise usage_error(
                f"two models are compared on one task, and these differ in {name}: "
                f"{names[0]} ({first.name}) has {value}, {names[1]} ({second.name}) has {other[name]}."
            )


def _properties(task: FileTask) -> dict[str, str]:
    return {
        "the kind of answer": type_name(type(task)).replace("_", " "),
        "labels": ", ".join(sorted(task.labels)) or "none",
        "texts per example": "two" if getattr(task, "pair", False) else "one",
    }


def compare_predictions(
    task: FileTask[E, P],
    split: str,
    examples: Sequence[E],
    first: Sequence[P],
    second: Sequence[P],
    names: tuple[str, str],
) -> Comparison:
    """Compare two lists of predictions for the same labelled examples."""
    sides = [resample(task, examples, predictions) for predictions in (first, second)]
    count = min(len(side.resampled) for side in sides)
    differing, mcnemar = _list_differing(task, examples, first, second), _test_classes(task, examples, first, second)
    least = {"accuracy": mcnemar.p} if mcnemar is not None else {}
    scores = {}
    for place, name in enumerate(sides[0].scores):
        one, other = (side.resampled[:count, place] for side in sides)
        values = [side.scores[name] for side in sides]
        scores[name] = ScoreDifference(
            first=with_interval(name, values[0], one, len(examples)),
            second=with_interval(name, values[1], other, len(examples)),
            difference=_difference(values[1] - values[0], other - one),
            p=max(p_value(other - one), _least_p(len(differing)), least.get(name, 0.0)),
        )
    return Comparison(
        first=names[0],
        second=names[1],
        task=task.name,
        split=split,
        metric=task.metric,
        examples=len(examples),
        resamples=count,
        scores=scores,
        disagreements=[
            Disagreement(id=one.id, text=one.text, gold=one.gold, first=one.answer, second=other.answer)
            for one, other in differing[:_MAX_DISAGREEMENTS]
        ],
        mcnemar=mcnemar,
    )


def _difference(value: float, resampled: Scores) -> ScoreInterval:
    low, high = percentile_interval(resampled)
    return ScoreInterval(value=value, low=low, high=high)


def _least_p(differing: int) -> float:
    """The smallest p that d different answers can have, as in a paired randomisation test: 2 of its 2**d outcomes.

    Resamples of three examples that all differ in one direction differ in it too, however few they are.
    """
    return min(1.0, 2.0 ** (1 - differing))


def _test_classes(
    task: FileTask[E, P], examples: Sequence[E], first: Sequence[P], second: Sequence[P]
) -> McNemar | None:
    """McNemar's test; None where predictions are not classes."""
    one, other = (gold_and_predicted_classes(task, examples, predictions) for predictions in (first, second))
    if one is None or other is None:
        return None
    first_correct, second_correct = (
        [gold == label for gold, label in zip(*each, strict=True)] for each in (one, other)
    )
    correct = list(zip(first_correct, second_correct, strict=True))
    only_first, only_second = correct.count((True, False)), correct.count((False, True))
    return McNemar(only_first=only_first, only_second=only_second, p=mcnemar_p(only_first, only_second))


def _list_differing(
    task: FileTask[E, P], examples: Sequence[E], first: Sequence[P], second: Sequence[P]
) -> list[tuple[ExampleReport, ExampleReport]]:
    """The reports of the examples with different answers, the largest difference of their errors first."""
    pairs = [
        (task.report(example, one), task.report(example, other))
        for example, one, other in zip(examples, first, second, strict=True)
    ]
    differing = [(one, other) for one, other in pairs if one.answer != other.answer]
    return sorted(differing, key=lambda pair: -abs(pair[0].error - pair[1].error))
