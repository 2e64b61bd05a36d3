"""Scores that may be undefined, as a correlation with a constant is: NaN in Python, null in JSON, a word in tables.

A record states the type ``Score`` for such a field, so that ``config.from_json`` reads null as NaN there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

UNDEFINED = math.nan
UNDEFINED_IS_NULL = "null is undefined"

CORRELATIONS = ("matthews", "pearson", "spearman")
"""Scores from -1 to 1, which are no shares and are not shown in per cent."""

Score = Annotated[float, UNDEFINED_IS_NULL]


def are_shares(name: str, *values: float) -> bool:
    """Whether values of a score are shown in per cent: they are no correlations, and none is outside of 0 to 1, as the
    values of a task of one's own may be."""
    return name not in CORRELATIONS and all(0 <= value <= 1 for value in values)


def is_defined(score: float) -> bool:
    """Whether a score is a number."""
    return not math.isnan(score)


def rank_score(score: float) -> float:
    """The key of a score where the best is looked for: an undefined one is worse than every other."""
    return score if is_defined(score) else -math.inf


def name_on_split(name: str, split: str) -> str:
    """The name of a score on a dev set: ``accuracy_mismatched`` for the accuracy on ``dev_mismatched``."""
    return f"{name}{split.removeprefix('dev')}"


def format_score(score: float) -> str:
    """The score with four decimals, or the word ``undefined``."""
    return f"{score:.4f}" if is_defined(score) else "undefined"


def format_scores(scores: Mapping[str, float]) -> str:
    """``pearson 0.8123, spearman undefined``."""
    return ", ".join(f"{name} {format_score(score)}" for name, score in scores.items())


@dataclass(frozen=True, slots=True)
class Summary:
    """Scores of several seeds. ``sd`` is the standard deviation of a sample (n - 1), None for a single score.

    If one of the scores is undefined, so is ``mean``, and ``sd`` is None; ``best`` is that of the others.
    """

    mean: float
    sd: float | None
    best: float
    count: int

    def __str__(self) -> str:
        """``0.8123 ± 0.0041 (best 0.8170 of 5)``, or the single score."""
        if self.sd is None:
            return format_score(self.mean)
        return f"{self.mean:.4f} ± {self.sd:.4f} (best {self.best:.4f} of {self.count})"


def summarize_scores(scores: Sequence[float]) -> Summary:
    """Mean, standard deviation and best of at least one score; higher is better."""
    assert scores, "nothing to summarize"
    mean, best = statistics.fmean(scores), max(scores, key=rank_score)
    sd = statistics.stdev(scores) if len(scores) > 1 and is_defined(mean) else None
    return Summary(mean=mean, sd=sd, best=best, count=len(scores))
