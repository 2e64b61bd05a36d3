"""Two models on the same examples: how far apart they are, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertkit.errors import usage_error
from bertkit.evaluation.report import Score, answers_of_classes
from bertkit.evaluation.resampling import resample
from bertkit.metrics.bootstrap import Scores, p_value, percentile_interval
from bertkit.metrics.comparison import mcnemar
from bertkit.task_types import FileTask

CHANCE = 0.05
"""Differences that chance makes less often than this are said to be larger than chance."""

_MOST_DIFFERING = 10


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A score of both; ``difference`` is the second less the first, ``p`` two-sided from a paired bootstrap."""

    first: Score
    second: Score
    difference: Score
    p: float


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Examples that only one of the two has right, and McNemar's exact ``p``."""

    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, kw_only=True)
class Differing:
    """An example that the two answer differently."""

    id: str
    text: str
    gold: str
    first: str
    second: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two models on the same examples and the same resamples of them; ``contest`` is None where answers are no classes.

    ``differing`` begins with the examples where one is most wrong and the other less.
    """

    first: str
    second: str
    task: str
    split: str
    metric: str
    examples: int
    resamples: int
    scores: dict[str, Difference]
    differing: list[Differing]
    contest: Contest | None = None

    def sentence(self) -> str:
        """Who is better by the task's metric, and whether that may be chance."""
        found = self.scores[self.metric]
        figures = f"{self.metric} {found.difference.value:+.4f} ({found.difference.low:+.4f} to "
        figures += f"{found.difference.high:+.4f}, p = {found.p:.3f})"
        if found.p >= CHANCE:
            return f"No difference larger than chance between {self.first} and {self.second}: {figures}."
        better, worse = (self.second, self.first) if found.difference.value > 0 else (self.first, self.second)
        return f"{better} is better than {worse}, by more than chance: {figures}."


def require_same_question(first: FileTask, second: FileTask, names: tuple[str, str]) -> None:
    """Two models are compared only when they answer alike; the error says how they differ."""
    for what, one, other in zip(_ASKED, _what_is_asked(first), _what_is_asked(second), strict=True):
        if one != other:
            raise usage_error(
                f"two models are compared on one task, and these differ in {what}: "
                f"{names[0]} ({first.name}) has {one}, {names[1]} ({second.name}) has {other}."
            )


_ASKED = ("the kind of answer", "labels", "texts an example")


def _what_is_asked(task: FileTask) -> tuple[str, str, str]:
    return task.shape, ", ".join(sorted(task.labels)) or "none", "two" if getattr(task, "pair", False) else "one"


def contrast(
    task: FileTask,
    split: str,
    examples: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    names: tuple[str, str],
) -> Comparison:
    """Compare two lists of predictions for the same labelled examples."""
    sides = [resample(task, examples, predictions) for predictions in (first, second)]
    count = min(len(side.drawn) for side in sides)
    drawn = [side.drawn[:count] for side in sides]
    scores = {}
    for place, name in enumerate(sides[0].scores):
        values = [side.scores[name] for side in sides]
        columns = [each[:, place] for each in drawn]
        apart = columns[1] - columns[0]
        scores[name] = Difference(
            first=_score(values[0], columns[0]),
            second=_score(values[1], columns[1]),
            difference=_score(values[1] - values[0], apart),
            p=p_value(apart),
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
        differing=_find_differing(task, examples, first, second),
        contest=_hold_contest(task, examples, first, second),
    )


def _score(value: float, column: Scores) -> Score:
    low, high = percentile_interval(column)
    return Score(value=value, low=low, high=high)


def _hold_contest(
    task: FileTask, examples: Sequence[Any], first: Sequence[Any], second: Sequence[Any]
) -> Contest | None:
    answers = [answers_of_classes(task, examples, predictions) for predictions in (first, second)]
    if answers[0] is None or answers[1] is None:
        return None
    gold = answers[0][0]
    right = [[one == other for one, other in zip(gold, each[1], strict=True)] for each in answers if each]
    only_first = sum(one and not other for one, other in zip(*right, strict=True))
    only_second = sum(other and not one for one, other in zip(*right, strict=True))
    return Contest(only_first=only_first, only_second=only_second, p=mcnemar(only_first, only_second))


def _find_differing(
    task: FileTask, examples: Sequence[Any], first: Sequence[Any], second: Sequence[Any]
) -> list[Differing]:
    pairs = [
        (task.mark(example, one), task.mark(example, other))
        for example, one, other in zip(examples, first, second, strict=True)
    ]
    apart = [(one, other) for one, other in pairs if one.answer != other.answer]
    apart.sort(key=lambda pair: -abs(pair[0].size - pair[1].size))
    return [
        Differing(id=one.id, text=one.text, gold=one.gold, first=one.answer, second=other.answer)
        for one, other in apart[:_MOST_DIFFERING]
    ]
