"""Exact match and F1 of answers, by the rules of SQuAD 1.1, SQuAD 2.0 and KorQuAD 1.0.

The arithmetic is that of the official programs ``evaluate-v1.1.py``, ``evaluate-v2.0.py`` and
``evaluate-korquad_v1.0.py``; results are in per cent, as theirs. One departure: a question without a prediction counts
as wrong everywhere, where the program of 2.0 leaves it out of the total or ends with a KeyError.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Rules = Literal["v1", "v2", "korquad"]
"""``v1`` and ``v2`` differ in answers that are empty after normalisation, and in what they report."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


class Score(NamedTuple):
    """Of one answer, the better of all gold answers: 0 to 1."""

    exact: float
    f1: float


@lru_cache(maxsize=100_000)
def normalize(text: str, rules: Rules = "v1") -> str:
    """The text as answers are compared: lower case, without ASCII punctuation and English articles, single spaces.

    By the rules of KorQuAD articles stay, and some brackets and quotation marks part words instead of vanishing.
    """
    if rules == "korquad":
        return " ".join(text.translate(_KOREAN_MARKS).lower().translate(_NO_PUNCTUATION).split())
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def score_answer(answer: str, gold: Sequence[str], rules: Rules) -> Score:
    """An answer against all gold ones. By ``v2`` no (other than empty) gold answer means that "" is right.

    By the other rules an answer without gold is wrong; their official programs end with an error there.
    """
    if rules == "v2":
        gold = [each for each in gold if normalize(each)] or [""]
    given = normalize(answer, rules)
    wanted = [normalize(each, rules) for each in gold]
    return Score(
        exact=max((float(given == each) for each in wanted), default=0.0),
        f1=max((_f1(given, each, rules) for each in wanted), default=0.0),
    )


def _f1(given: str, wanted: str, rules: Rules) -> float:
    """Of the words that both have, or by KorQuAD's rules of the characters."""
    ours, theirs = _parts(given, rules), _parts(wanted, rules)
    if rules == "v2" and not (ours and theirs):
        return float(ours == theirs)
    shared = (Counter(ours) & Counter(theirs)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)


def _parts(text: str, rules: Rules) -> list[str]:
    return list(text.replace(" ", "")) if rules == "korquad" else text.split()


def score_all(
    gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str], rules: Rules = "v1"
) -> dict[str, float]:
    """``exact_match`` and ``f1`` over all questions of ``gold`` (id -> answers), for ``v1`` and ``korquad``."""
    scores = [score_answer(predictions[id], answers, rules) for id, answers in gold.items() if id in predictions]
    return {
        "exact_match": _percent((score.exact for score in scores), len(gold)),
        "f1": _percent((score.f1 for score in scores), len(gold)),
    }


def score_all_v2(
    gold: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """What ``evaluate-v2.0.py`` reports: all questions, those with and those without an answer.

    ``no_answer`` (id -> how much speaks against an answer) turns every answer above ``threshold`` into none, and adds
    the best scores that any threshold reaches. A question is without an answer if it has none in ``gold``.
    """
    scores = {id: score_answer(predictions[id], answers, "v2") for id, answers in gold.items() if id in predictions}
    decided = dict(scores)
    for id in scores:
        if (no_answer or {}).get(id, 0.0) > threshold:
            right = float(not gold[id])
            decided[id] = Score(right, right)
    report = _summarise(decided, list(gold))
    for name, ids in (("HasAns", [id for id in gold if gold[id]]), ("NoAns", [id for id in gold if not gold[id]])):
        if ids:
            report |= {f"{name}_{key}": value for key, value in _summarise(decided, ids).items()}
    if no_answer:
        for name in Score._fields:
            found = {id: float(getattr(score, name)) for id, score in scores.items()}
            report[f"best_{name}"], report[f"best_{name}_thresh"] = _sweep(found, gold, predictions, no_answer)
    return report


def _summarise(scores: Mapping[str, Score], ids: Sequence[str]) -> dict[str, float]:
    found = [scores[id] for id in ids if id in scores]
    return {
        "exact": _percent((score.exact for score in found), len(ids)),
        "f1": _percent((score.f1 for score in found), len(ids)),
        "total": len(ids),
    }


def _sweep(
    scores: Mapping[str, float],
    gold: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float],
) -> tuple[float, float]:
    """(best score, its threshold), when questions are answered in the order of ``no_answer``, the surest first.

    Where answering none is best the official threshold is 0, which does not say so.
    """
    best = current = float(sum(not gold[id] for id in scores))
    threshold = 0.0
    for id in sorted(no_answer, key=lambda id: no_answer[id]):
        if id not in scores:
            continue
        current += scores[id] if gold[id] else -float(bool(predictions[id]))
        if current > best:
            best, threshold = current, no_answer[id]
    return 100.0 * best / len(gold), threshold


def _percent(values: Iterable[float], count: int) -> float:
    return 100.0 * sum(values) / count if count else 0.0
