"""How good a model is on one split, as a record: scores with intervals, classes, calibration, lengths, mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bertkit import config
from bertkit.evaluation.resampling import resample
from bertkit.metrics.bootstrap import percentile_interval
from bertkit.metrics.calibration import Bin, expected_calibration_error, reliability
from bertkit.metrics.classification import ClassScore, confusion, score_classes
from bertkit.task_types import ExampleReport, FileTask

_MOST_MISTAKES = 20
_SHORTEST = 8


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score and its 95 % interval (percentile bootstrap over examples)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """``0.9128 (0.9000 to 0.9240)``."""
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, kw_only=True)
class LengthScore:
    """The metric on the examples with ``shortest`` to ``longest`` words."""

    shortest: int
    longest: int
    examples: int
    score: Score


@dataclass(frozen=True, kw_only=True)
class Classes:
    """``confusion`` counts gold classes (rows) and answers (columns), both in the order of ``rows``."""

    rows: list[ClassScore]
    confusion: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """``error`` is the expected calibration error: the distance of accuracy from confidence."""

    error: float
    bins: list[Bin]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation(Mapping[str, float]):
    """The scores of a model on one split by name, as a mapping, and whatever else is known of its answers.

    ``classes`` and ``calibration`` are None where answers are no classes or have no probabilities. ``parts`` are what
    answers consist of, such as the types of entities. ``worst`` begins with the largest mistake. ``notes`` say what
    was left out or cut off.
    """

    task: str
    split: str
    metric: str
    examples: int
    resamples: int
    scores: dict[str, Score]
    lengths: list[LengthScore]
    worst: list[ExampleReport]
    notes: list[str] = field(default_factory=list)
    classes: Classes | None = None
    calibration: Calibration | None = None
    parts: list[ClassScore] = field(default_factory=list)

    def __getitem__(self, name: str) -> float:
        return self.scores[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def record(self) -> dict[str, Any]:
        """Plain JSON: every score by its name, and then everything."""
        everything = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**self, **config.to_json(everything)}


def examine(
    task: FileTask, split: str, examples: Sequence[Any], predictions: Sequence[Any], *, notes: Sequence[str] = ()
) -> Evaluation:
    """Look at the answers to labelled examples, from all sides that their shape allows."""
    marks = [task.mark(example, prediction) for example, prediction in zip(examples, predictions, strict=True)]
    scores, resamples = score_with_intervals(task, examples, predictions)
    wrong = sorted((mark for mark in marks if mark.size > 0), key=lambda mark: -mark.size)
    return Evaluation(
        task=task.name,
        split=split,
        metric=task.metric,
        examples=len(marks),
        resamples=resamples,
        scores=scores,
        lengths=_score_lengths(task, examples, predictions, marks),
        worst=wrong[:_MOST_MISTAKES],
        notes=[*notes, *_describe_cuts(marks)],
        classes=_examine_classes(task, examples, predictions),
        calibration=_calibrate(marks),
        parts=task.score_parts(examples, predictions),
    )


def score_with_intervals(
    task: FileTask, examples: Sequence[Any], predictions: Sequence[Any]
) -> tuple[dict[str, Score], int]:
    """The scores of a task by name, and on how many resamples their intervals rest."""
    scores, drawn = resample(task, examples, predictions)
    found: dict[str, Score] = {}
    for (name, value), column in zip(scores.items(), drawn.T, strict=True):
        low, high = percentile_interval(column)
        found[name] = Score(value=value, low=low, high=high)
    return found, len(drawn)


def _score_lengths(
    task: FileTask, examples: Sequence[Any], predictions: Sequence[Any], marks: Sequence[ExampleReport]
) -> list[LengthScore]:
    """Of up to 8 words, of 9 to 16, of 17 to 32, and so on as far as there are examples."""
    buckets: dict[int, list[int]] = {}
    for place, mark in enumerate(marks):
        longest = _SHORTEST
        while longest < mark.words:
            longest *= 2
        buckets.setdefault(longest, []).append(place)
    found = []
    for longest, places in sorted(buckets.items()):
        own = [examples[place] for place in places], [predictions[place] for place in places]
        score = score_with_intervals(task, *own)[0][task.metric]
        shortest = 0 if longest == _SHORTEST else longest // 2 + 1
        found.append(LengthScore(shortest=shortest, longest=longest, examples=len(places), score=score))
    return found


def _examine_classes(task: FileTask, examples: Sequence[Any], predictions: Sequence[Any]) -> Classes | None:
    found = answers_of_classes(task, examples, predictions)
    if found is None:
        return None
    gold, answers = found
    rows = score_classes(gold, answers, classes=task.labels)
    return Classes(rows=rows, confusion=confusion(gold, answers, classes=task.labels))


def answers_of_classes(
    task: FileTask, examples: Sequence[Any], predictions: Sequence[Any]
) -> tuple[list[str], list[str]] | None:
    """The gold class of every example and the one answered; None where the task asks for something else."""
    gold = [example.label for example in examples]
    answers = [getattr(prediction, "label", None) for prediction in predictions]
    are_classes = task.labels and all(isinstance(each, str) and each in task.labels for each in (*gold, *answers))
    return (gold, answers) if are_classes else None  # type: ignore[return-value]


def _calibrate(marks: Sequence[ExampleReport]) -> Calibration | None:
    sure = [mark.confidence for mark in marks if mark.confidence is not None]
    if len(sure) < len(marks):
        return None
    bins = reliability(sure, [mark.size == 0 for mark in marks])
    return Calibration(error=expected_calibration_error(bins), bins=bins)


def _describe_cuts(marks: Sequence[ExampleReport]) -> list[str]:
    cut = [mark.num_truncated for mark in marks if mark.num_truncated]
    return [f"the ends of {len(cut):,} of {len(marks):,} texts were cut off, {sum(cut):,} tokens in all"] if cut else []
