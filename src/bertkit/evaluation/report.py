"""The evaluation of a model on one split: scores with intervals, classes, calibration, lengths, worst examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bertkit.config.records import to_plain
from bertkit.contracts import E, Example, P
from bertkit.errors import count_of, verb_of
from bertkit.finetuning.baselines import Baseline
from bertkit.inference.runtime import ResolvedPrecision
from bertkit.metrics.bootstrap import Scores, score_interval
from bertkit.metrics.calibration import Bin, expected_calibration_error, reliability
from bertkit.metrics.classification import ClassScore, confusion, score_classes
from bertkit.results import Result
from bertkit.scores import Score, format_score, is_defined
from bertkit.task_types import ExampleReport, FileTask
from bertkit.task_types.resampling import resample

_MAX_WORST = 20

_FIRST_BUCKET = 8
"""Words of the longest input in the first length bucket; every further bucket ends at twice as many."""


@dataclass(frozen=True, kw_only=True)
class ScoreInterval:
    """A score and its 95 % confidence interval (bootstrap over examples, ``bootstrap.py``); NaN where undefined."""

    value: Score
    low: Score
    high: Score

    def __str__(self) -> str:
        """``0.9128 (0.9000 to 0.9240)``, or ``undefined``."""
        if not is_defined(self.value) or not is_defined(self.low):
            return format_score(self.value)
        value, low, high = map(format_score, (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


@dataclass(frozen=True, kw_only=True)
class LengthScore:
    """The metric on the examples with ``shortest`` to ``longest`` words."""

    shortest: int
    longest: int
    examples: int
    score: ScoreInterval


@dataclass(frozen=True, kw_only=True)
class Classes:
    """``confusion`` counts gold (rows) and predicted classes (columns), both in the order of ``rows``."""

    rows: list[ClassScore]
    confusion: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """``error`` is the expected calibration error: the mean distance of accuracy from confidence."""

    error: float
    bins: list[Bin]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Result, Mapping[str, float]):
    """A mapping from score names to the scores of a model on one split, with details of its predictions.

    ``classes`` and ``calibration`` are None where predictions are not classes or have no probabilities. ``parts`` are
    scores by part of a prediction, such as entity types. ``worst`` begins with the largest error. ``notes`` say what
    was left out or truncated. ``verdict`` is a sentence that compares the model with its ``baselines``, or says why
    there are none; ``warnings`` are reasons to distrust the scores. ``precision`` is the number format of the model's
    matrix products.
    """

    task: str
    split: str
    metric: str
    examples: int
    resamples: int
    scores: dict[str, ScoreInterval]
    lengths: list[LengthScore]
    worst: list[ExampleReport]
    notes: list[str] = field(default_factory=list)
    classes: Classes | None = None
    calibration: Calibration | None = None
    parts: list[ClassScore] = field(default_factory=list)
    baselines: list[Baseline] = field(default_factory=list)
    verdict: str = ""
    warnings: list[str] = field(default_factory=list)
    precision: ResolvedPrecision = "float32"

    def __getitem__(self, name: str) -> float:
        return self.scores[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={format_score(each.value)}" for name, each in self.scores.items())
        return f"Evaluation({self.task}, {self.split}: {shown}; {count_of(self.examples, 'example')})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: every score by its name, then all fields."""
        all_fields = {each.name: getattr(self, each.name) for each in fields(self)}
        record: dict[str, Any] = to_plain({**self, **all_fields})
        return record


def evaluate_predictions(
    task: FileTask[E, P], split: str, examples: Sequence[E], predictions: Sequence[P], *, notes: Sequence[str] = ()
) -> Evaluation:
    """Score the predictions for labelled examples, with every detail that this kind of task has."""
    reports = [task.report(example, prediction) for example, prediction in zip(examples, predictions, strict=True)]
    scores, resamples = score_with_intervals(task, examples, predictions)
    wrong = sorted((report for report in reports if report.error > 0), key=lambda report: -report.error)
    return Evaluation(
        task=task.name,
        split=split,
        metric=task.metric,
        examples=len(reports),
        resamples=resamples,
        scores=scores,
        lengths=_score_lengths(task, examples, predictions, reports),
        worst=wrong[:_MAX_WORST],
        notes=[*notes, *_describe_truncation(reports, task.truncated)],
        classes=_score_classes(task, examples, predictions),
        calibration=_calibrate(reports),
        parts=task.score_parts(examples, predictions),
    )


def score_with_intervals(
    task: FileTask[E, P], examples: Sequence[E], predictions: Sequence[P]
) -> tuple[dict[str, ScoreInterval], int]:
    """The scores of a task by name, and the number of resamples that their intervals are computed from."""
    scores, resampled = resample(task, examples, predictions)
    columns = zip(scores.items(), resampled.T, strict=True)
    found = {name: with_interval(name, value, column, len(examples)) for (name, value), column in columns}
    return found, len(resampled)


def with_interval(name: str, value: float, resampled: Scores, size: int) -> ScoreInterval:
    """The score ``name`` of ``size`` examples, with the interval of its resamples."""
    low, high = score_interval(name, resampled, size)
    return ScoreInterval(value=value, low=low, high=high)


def _score_lengths(
    task: FileTask[E, P], examples: Sequence[E], predictions: Sequence[P], reports: Sequence[ExampleReport]
) -> list[LengthScore]:
    """The metric by input length: up to 8 words, 9 to 16, 17 to 32 and so on; buckets without examples are left out."""
    buckets: dict[int, list[int]] = {}
    for place, report in enumerate(reports):
        longest = _FIRST_BUCKET
        while longest < report.words:
            longest *= 2
        buckets.setdefault(longest, []).append(place)
    found = []
    for longest, places in sorted(buckets.items()):
        subset = [examples[place] for place in places], [predictions[place] for place in places]
        score = score_with_intervals(task, *subset)[0][task.metric]
        shortest = 0 if longest == _FIRST_BUCKET else longest // 2 + 1
        found.append(LengthScore(shortest=shortest, longest=longest, examples=len(places), score=score))
    return found


def _score_classes(task: FileTask[E, P], examples: Sequence[E], predictions: Sequence[P]) -> Classes | None:
    found = gold_and_predicted_classes(task, examples, predictions)
    if found is None:
        return None
    gold, predicted = found
    rows = score_classes(gold, predicted, classes=task.labels)
    return Classes(rows=rows, confusion=confusion(gold, predicted, classes=task.labels))


def gold_and_predicted_classes(
    task: FileTask, examples: Sequence[Example], predictions: Sequence[Any]
) -> tuple[list[str], list[str]] | None:
    """The gold class and the predicted class of every example; None where predictions are not classes."""
    if not task.predicts_one_class:
        return None
    return [str(example.label) for example in examples], [prediction.label for prediction in predictions]


def _calibrate(reports: Sequence[ExampleReport]) -> Calibration | None:
    confidences = [report.confidence for report in reports if report.confidence is not None]
    if len(confidences) < len(reports):
        return None
    bins = reliability(confidences, [report.error == 0 for report in reports])
    return Calibration(error=expected_calibration_error(bins), bins=bins)


def _describe_truncation(reports: Sequence[ExampleReport], kind: str) -> list[str]:
    """A sentence if the end of some inputs was not read; ``kind`` names what was cut off: text or question."""
    lost = [report.num_truncated for report in reports if report.num_truncated]
    if not lost:
        return []
    texts = f"{len(lost):,} of {count_of(len(reports), kind)} {verb_of(len(lost), 'was', 'were')} truncated"
    return [f"{texts} at the end, by {count_of(sum(lost), 'token')} in all"]
