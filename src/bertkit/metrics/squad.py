"""Exact match and F1 of answers, by the rules of SQuAD 1.1, SQuAD 2.0 and KorQuAD 1.0.

The arithmetic is that of the official programs ``evaluate-v1.1.py``, ``evaluate-v2.0.py`` and
``evaluate-korquad_v1.0.py``, and results are in per cent, as there. One difference: a question without a prediction
always counts as wrong, while the program of 2.0 leaves it out of the total or ends with a KeyError.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Rules = Literal["v1", "v2", "korquad"]
"""``v1`` and ``v2`` differ in answers that are empty after normalisation, and in the scores that they report."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


class Score(NamedTuple):
    """Scores of one answer against its best gold answer, from 0 to 1."""

    exact: float
    f1: float


@lru_cache(maxsize=100_000)
def normalize(text: str, rules: Rules = "v1") -> str:
    """Lower case, without ASCII punctuation and English articles, words separated by single spaces.

    By the rules of KorQuAD articles are kept, and some brackets and quotation marks become spaces.
    """
    if rules == "korquad":
        return " ".join(text.translate(_KOREAN_MARKS).lower().translate(_NO_PUNCTUATION).split())
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def score_answer(answer: str, gold: Sequence[str], rules: Rules) -> Score:
    """The best scores of an answer against all gold answers.

    By ``v2`` the answer "" is right if all gold answers are empty or there are none. By the other rules an answer
    without gold answers is wrong; their official programs end with an error there.
    """
    if rules == "v2":
        gold = [each for each in gold if normalize(each)] or [""]
    normalized = normalize(answer, rules)
    normalized_gold = [normalize(each, rules) for each in gold]
    return Score(
        exact=max((float(normalized == each) for each in normalized_gold), default=0.0),
        f1=max((_f1(normalized, each, rules) for each in normalized_gold), default=0.0),
    )


def _f1(answer: str, gold: str, rules: Rules) -> float:
    """F1 of the shared words, or by KorQuAD's rules of the shared characters."""
    answer_units, gold_units = _units(answer, rules), _units(gold, rules)
    if rules == "v2" and not (answer_units and gold_units):
        return float(answer_units == gold_units)
    shared = (Counter(answer_units) & Counter(gold_units)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(answer_units), shared / len(gold_units)
    return 2 * precision * recall / (precision + recall)


def _units(text: str, rules: Rules) -> list[str]:
    return list(text.replace(" ", "")) if rules == "korquad" else text.split()


def score_all(gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str], rules: Rules) -> dict[str, float]:
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
    """The report of ``evaluate-v2.0.py``: scores of all questions, and of those with and without an answer in ``gold``.

    ``no_answer`` (id -> score of "no answer", 0 where it has none) turns every answer whose score is above
    ``threshold`` into "", and adds the best scores that any threshold reaches.
    """
    scores = {id: score_answer(predictions[id], answers, "v2") for id, answers in gold.items() if id in predictions}
    decided = dict(scores)
    for id in scores:
        if (no_answer or {}).get(id, 0.0) > threshold:
            correct = float(not gold[id])
            decided[id] = Score(correct, correct)
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
    """(best score, its threshold), answering questions in ascending order of ``no_answer``.

    Where answering no question at all is best, the threshold is 0.0, as in the official program.
    """
    best = current = float(sum(not gold[id] for id in scores))
    threshold = 0.0
    known = [*no_answer, *(id for id in scores if id not in no_answer)]
    for id in sorted(known, key=lambda id: no_answer.get(id, 0.0)):
        if id not in scores:
            continue
        current += scores[id] if gold[id] else -float(bool(predictions[id]))
        if current > best:
            best, threshold = current, no_answer.get(id, 0.0)
    return 100.0 * best / len(gold), threshold


def _percent(values: Iterable[float], count: int) -> float:
    return 100.0 * sum(values) / count if count else 0.0
