"""How scores are read: which of two is better, whether it is shown in per cent, and what it is called in pictures.

A score may be undefined, as a correlation with a constant is: NaN in Python, null in JSON, a word in tables. A record
states the type ``Score`` for such a field, so that ``from_plain`` reads null as NaN there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

UNDEFINED = math.nan
UNDEFINED_IS_NULL = "null is undefined"

Score = Annotated[float, UNDEFINED_IS_NULL]

_FOUR_DECIMALS_FROM, _FOUR_DECIMALS_BELOW = 5e-4, 1e12


@dataclass(frozen=True, slots=True)
class ScoreKind:
    """What the values of a score mean. ``title`` is its name in pictures.

    A share is from 0 to 1 and is shown in per cent. A correlation is from -1 to 1. An error is 0 or more, in the unit
    of the answers, and less is better.
    """

    title: str
    scale: Literal["share", "correlation", "error"] = "share"

    @property
    def is_error(self) -> bool:
        """Whether less is better."""
        return self.scale == "error"

    @property
    def perfect(self) -> float:
        """The value with nothing left to gain."""
        return 0.0 if self.is_error else 1.0


SCORE_KINDS: dict[str, ScoreKind] = {
    "f1": ScoreKind("F1"),
    "macro_f1": ScoreKind("macro F1"),
    "micro_f1": ScoreKind("micro F1"),
    "exact": ScoreKind("exact match"),
    "roc_auc": ScoreKind("area under the ROC curve"),
    "matthews": ScoreKind("Matthews correlation", "correlation"),
    "pearson": ScoreKind("Pearson correlation", "correlation"),
    "spearman": ScoreKind("Spearman correlation", "correlation"),
    "mean_absolute_error": ScoreKind("mean absolute error", "error"),
}
"""Scores by name. One that is missing here is a share, and its title is its name. A module with a task of one's own
that is scored by an error adds that error."""


def kind_of(name: str) -> ScoreKind:
    """What the values of the score ``name`` mean."""
    return SCORE_KINDS.get(name) or ScoreKind(name.replace("_", " "))


def are_shares(name: str, *values: float) -> bool:
    """Whether values of a score are shown in per cent: none is outside of 0 to 1, as the values of a task of one's own
    may be."""
    return kind_of(name).scale == "share" and all(0 <= value <= 1 for value in values)


def is_defined(score: float) -> bool:
    """Whether a score is a number."""
    return not math.isnan(score)


def rank_score(name: str, score: float) -> float:
    """The key of a value of the score ``name`` where the best is looked for: higher is better, and an undefined one is
    worse than every other."""
    if not is_defined(score):
        return -math.inf
    return -score if kind_of(name).is_error else score


def gain_of(name: str, score: float, other: float) -> float:
    """By how much ``score`` is better than ``other``; negative if it is worse, NaN if one is undefined."""
    return other - score if kind_of(name).is_error else score - other


def is_perfect(name: str, score: float) -> bool:
    """Whether there is nothing left to gain."""
    return score == kind_of(name).perfect


def lack_of(name: str, score: float) -> float:
    """How much is left to gain."""
    return gain_of(name, kind_of(name).perfect, score)


def name_on_split(name: str, split: str) -> str:
    """The name of a score on a dev set: ``accuracy_mismatched`` for the accuracy on ``dev_mismatched``."""
    return f"{name}{split.removeprefix('dev')}"


def format_score(score: float) -> str:
    """The score with four decimals, or the word ``undefined``.

    Errors may be of any size: below 0.0005 there are two significant digits, from 1e12 on six.
    """
    if not is_defined(score):
        return "undefined"
    if 0 < abs(score) < _FOUR_DECIMALS_FROM:
        return f"{score:.2g}"
    return f"{score:.4f}" if abs(score) < _FOUR_DECIMALS_BELOW else f"{score:.6g}"


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
        mean, sd, best = map(format_score, (self.mean, self.sd, self.best))
        return f"{mean} ± {sd} (best {best} of {self.count})"


def summarize_scores(name: str, scores: Sequence[float]) -> Summary:
    """Mean, standard deviation and best of at least one value of the score ``name``."""
    assert scores, "nothing to summarize"
    mean, best = statistics.fmean(scores), max(scores, key=lambda score: rank_score(name, score))
    sd = statistics.stdev(scores) if len(scores) > 1 and is_defined(mean) else None
    return Summary(mean=mean, sd=sd, best=best, count=len(scores))
