"""The difference of two systems on a task, with its interval.

A difference has two sources of chance. The seeds: both systems were fine-tuned with the same ones, so differences are
taken seed by seed, and their mean has Student's interval. The dev examples: the kept models of both systems answer the
same examples, and a paired bootstrap resamples these. The half widths of both intervals are added in quadrature.
For several columns together the error of 5 % is divided by their number (Bonferroni); the bootstrap's interval is
widened as one of a normal distribution is.

What another seed of pre-training would change is not in the interval: each network was pre-trained once.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bertkit.config.records import from_plain, to_plain
from bertkit.evaluation.compare import compare_predictions
from bertkit.evaluation.evaluate import predict_split, read_split
from bertkit.evaluation.report import ScoreInterval
from bertkit.inference.pipeline import load
from bertkit.metrics.bootstrap import LEVEL
from bertkit.optional import load as load_module
from bertkit.report.progress import Progress
from bertkit.reproduction.answers import Difference
from bertkit.scores import is_defined, name_on_split
from bertkit.storage.atomic import make_folder, read_object, write_json

_PERCENT = 100


def write_example_intervals(better: Path, worse: Path, limit: int | None, file: Path, progress: Progress) -> None:
    """Compare the kept models of two fine-tunings on the same dev examples, at most ``limit``.

    ``file`` gets the intervals of the scores of ``better`` minus those of ``worse``, by the name of the score.
    """
    models = [load(run) for run in (worse, better)]
    intervals: dict[str, object] = {}
    for split in ("dev", *models[0].task.reader.extra_dev_splits()):
        dev = read_split(models[0].task, None, split)
        dev = replace(dev, examples=dev.examples[:limit])
        one, other = (predict_split(model, dev, progress) for model in models)
        found = compare_predictions(dev.task, split, dev.examples, one, other, (str(worse), str(better)))
        intervals |= {name_on_split(name, split): to_plain(score.difference) for name, score in found.scores.items()}
    make_folder(file.parent)
    write_json(file, intervals)


def read_example_interval(file: Path, score: str) -> ScoreInterval | None:
    """What ``write_example_intervals`` found for ``score``; None if it has not yet."""
    found = read_object(file).get(score) if file.exists() else None
    return None if found is None else from_plain(ScoreInterval, found)


def find_difference(
    column: str,
    better: Sequence[float],
    worse: Sequence[float],
    examples: ScoreInterval | None,
    *,
    num_columns: int = 1,
) -> Difference | None:
    """The difference of two systems from their scores by seed, in per cent, and the interval over examples, as shares.

    It is one of ``num_columns`` of a claim. None if scores are missing, undefined, or of one seed.
    """
    if examples is None or len(better) != len(worse) or len(better) < 2:
        return None
    pairs = [one - other for one, other in zip(better, worse, strict=True)]
    mean = statistics.fmean(pairs)
    half, widest = (_half_width(pairs, examples, level) for level in (LEVEL, 1 - (1 - LEVEL) / num_columns))
    if not is_defined(half):
        return None
    return Difference(
        column=column,
        better=statistics.fmean(better),
        worse=statistics.fmean(worse),
        low=mean - half,
        high=mean + half,
        certain=abs(mean) > widest,
    )


def _half_width(pairs: Sequence[float], examples: ScoreInterval, level: float) -> float:
    """Half the interval of this ``level``, in per cent, of the mean of ``pairs``, the differences by seed."""
    stats, end = load_module("scipy.stats"), (1 + level) / 2
    by_seed = stats.t.ppf(end, len(pairs) - 1) * statistics.stdev(pairs) / math.sqrt(len(pairs))
    wider = stats.norm.ppf(end) / stats.norm.ppf((1 + LEVEL) / 2)
    return math.hypot(by_seed, wider * _PERCENT * (examples.high - examples.low) / 2)
