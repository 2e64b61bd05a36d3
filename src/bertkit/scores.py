"""Scores that may be undefined, as a correlation with a constant is: NaN in Python, null in JSON, a word in tables.

A record states the type ``Score`` for such a field, so that ``config.from_json`` reads null as NaN there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

UNDEFINED = math.nan
UNDEFINED_IS_NULL = "null is undefined"

CORRELATIONS = ("matthews", "pearson", "spearman")
"""Scores from -1 to 1, which are no shares and are not shown in per cent."""

Score = Annotated[float, UNDEFINED_IS_NULL]


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
