"""The baselines of a fine-tuned model, fitted and scored on the same data."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertkit.config.records import from_plain, to_plain
from bertkit.contracts import Example
from bertkit.metrics.bootstrap import score_interval
from bertkit.scores import (
    Score,
    are_shares,
    format_score,
    gain_of,
    is_defined,
    is_perfect,
    name_on_split,
    rank_score,
)
from bertkit.storage.checksums import read_record, write_checked
from bertkit.task_types import FileTask
from bertkit.task_types.baselines import BAG_OF_WORDS, sample_training
from bertkit.task_types.resampling import resample

_BASELINES = "baselines"

_MARGIN_OF_TWO = math.sqrt(2)
"""The interval of a difference is this much wider than that of each score, if both are equally uncertain."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """``scores`` on dev of a simple method that was fitted on the training examples, and the seconds it took.

    ``interval`` is the 95 % interval of the task's metric: the range to expect on as many other dev examples; undefined
    if there are too few, and None in records of runs that did not measure it. ``num_examples`` is the number of
    training examples that were used.
    """

    name: str
    scores: dict[str, Score]
    seconds: float = field(compare=False)
    interval: tuple[Score, Score] | None = None
    num_examples: int | None = None


def read_extra_dev(task: FileTask, limit: int | None) -> dict[str, list[Example]]:
    """The first ``limit`` labelled examples of each split that is scored beside dev, such as ``dev_mismatched``."""
    return {
        split: [example for example in task.examples(split) if example.label is not None][:limit]
        for split in task.reader.extra_dev_splits()
    }


def fit_baselines(
    task: FileTask,
    train: Sequence[Example],
    dev: Sequence[Example],
    extra_dev: Mapping[str, Sequence[Example]] | None = None,
) -> list[Baseline]:
    """Every baseline of the task; none for a task that has none.

    The scores of an ``extra_dev`` set such as ``dev_mismatched`` have its ending, as in ``accuracy_mismatched``.
    """
    found = []
    extra = extra_dev or {}
    train = sample_training(train)
    for name, predict in task.baselines().items():
        begin = time.monotonic()
        answers = predict(train, [*dev, *(example for examples in extra.values() for example in examples)])
        scores, resampled = resample(task, dev, answers[: len(dev)])
        interval = score_interval(task.metric, resampled[:, list(scores).index(task.metric)], len(dev))
        start = len(dev)
        for split, examples in extra.items():
            also = task.score(examples, answers[start : start + len(examples)])
            scores = scores | {name_on_split(each, split): value for each, value in also.items()}
            start += len(examples)
        seconds = round(time.monotonic() - begin, 2)
        found.append(Baseline(name=name, scores=scores, seconds=seconds, interval=interval, num_examples=len(train)))
    return found


def write_baselines(task: FileTask, limit: int | None, dev_limit: int | None, file: Path) -> None:
    """Write the baselines, fitted on the first ``limit`` and scored on the first ``dev_limit`` examples."""
    train, dev = task.reader.train_and_dev()
    train, dev = train[:limit], dev[:dev_limit]
    extra = read_extra_dev(task, dev_limit)
    file.parent.mkdir(parents=True, exist_ok=True)
    found = fit_baselines(task, train, dev, extra)
    write_checked(file, {_BASELINES: [to_plain(each) for each in found]})


def read_baselines(file: Path) -> list[Baseline]:
    """What ``write_baselines`` wrote."""
    records = read_record(file).get(_BASELINES, ())
    return [from_plain(Baseline, each, source=str(file)) for each in records]


def scores_to_beat(metric: str, baselines: Sequence[Baseline]) -> dict[str, float]:
    """The score of each baseline by its name, without undefined ones, as the correlation of the mean is, if another is
    defined."""
    scores = {each.name: each.scores[metric] for each in baselines}
    return {name: score for name, score in scores.items() if is_defined(score)} or scores


def describe_baselines(metric: str, baselines: Sequence[Baseline], num_train: int) -> str:
    """The scores to beat, and how many of ``num_train`` examples were used if not all, in a sentence."""
    to_beat = scores_to_beat(metric, baselines).items()
    scores = ", ".join(f"{name} {format_metric(metric, score)}" for name, score in to_beat)
    used = min((each.num_examples for each in baselines if each.num_examples), default=num_train)
    limit = f" (fitted on {used:,} of {num_train:,} training examples, drawn at random)" if used < num_train else ""
    return f"to beat: {scores}{limit}"


def verdict(metric: str, score: float, baselines: Sequence[Baseline]) -> str:
    """A sentence that compares a model's ``score`` with the best of its baselines; empty without any.

    Scores that differ by less than those of two equally good systems do in 19 of 20 dev sets are neither called better
    nor worse; both are taken to be as uncertain as the baseline. ``bertkit compare`` judges two models by their
    differences on each example, which is a sharper test.
    """
    if not baselines:
        return ""
    best = max(baselines, key=lambda each: rank_score(metric, each.scores[metric]))
    to_beat = best.scores[metric]
    name = f"a {best.name}" if best.name == BAG_OF_WORDS else f"the {best.name}"
    shares = are_shares(metric, score, to_beat)
    compared = f"{metric}: {name} has {_format(to_beat, shares)}, this model {_format(score, shares)}"
    if undefined := [who for who, each in ((name, to_beat), ("this model", score)) if not is_defined(each)]:
        return (
            f"{metric} is undefined for {' and for '.join(undefined)}: all predictions, or all gold answers, are equal"
        )
    if is_perfect(metric, score) and is_perfect(metric, to_beat):
        return f"{compared}: both have nothing left to gain on these examples"
    low, high = best.interval or (to_beat, to_beat)
    if not is_defined(low):
        return f"{compared}: there are too few examples to tell which is better"
    margin = _MARGIN_OF_TWO * max(0.0, high - to_beat if score > to_beat else to_beat - low)
    gain = gain_of(metric, score, to_beat)
    if gain > margin:
        return f"{compared}: the model is better by {_difference(gain, shares)}"
    if gain >= -margin:
        chance = f"; on this many examples two equally good systems may differ by {_difference(margin, shares)}"
        judgement = f"no clear difference{chance if margin else ''}"
        if is_perfect(metric, score):
            return f"{compared}: {judgement}; more dev examples would show which is better"
    else:
        judgement = f"the model is worse by {_difference(-gain, shares)} and not worth its cost yet"
    return f"{compared}: {judgement}. What helps: {_advise(best)}"


def format_metric(metric: str, score: float) -> str:
    """``75.0 %`` for a share, ``0.5690`` for a correlation, or ``undefined``."""
    return _format(score, are_shares(metric, score))


def _format(score: float, is_share: bool) -> str:
    return f"{100 * score:.1f} %" if is_share else format_score(score)


def _difference(difference: float, shares: bool) -> str:
    return f"{100 * difference:.1f} points" if shares else format_score(difference)


def _advise(best: Baseline) -> str:
    if best.name == BAG_OF_WORDS:
        return "a model that is larger or was pre-trained for longer, a higher --lr, or more --epochs"
    return "more training examples, a higher --lr, or more --epochs"
