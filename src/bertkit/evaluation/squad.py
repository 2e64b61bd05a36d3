"""Any file of predictions scored as SQuAD's and KorQuAD's official programs score it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import data_error, usage_error
from bertkit.metrics.squad import Rules, score_all, score_all_v2
from bertkit.task_types import QuestionAnsweringTask, SpanExample
from bertkit.task_types.user_tables import read_json_file


@dataclass(frozen=True, kw_only=True)
class SquadScore:
    """``scores`` under the names of the official program, in per cent.

    ``missing`` questions have no prediction and count as wrong; ``unknown`` predictions belong to no question and count
    nowhere.
    """

    rules: Rules
    scores: dict[str, float]
    missing: int
    unknown: int


def score_predictions(
    questions: Path, predictions: Path, *, null_odds: Path | None = None, rules: Rules | None = None
) -> SquadScore:
    """``predictions`` is an object of id -> answer, ``null_odds`` one of id -> what speaks for no answer.

    Without ``rules`` they are those of 2.0 if some question is marked as impossible, else those of 1.1.
    """
    asked = list(QuestionAnsweringTask(name=str(questions), null=True).read(questions))
    gold = {example.id: _texts(example, questions) for example in asked}
    rules = rules or ("v2" if any(example.impossible for example in asked) else "v1")
    given = _read_answers(predictions)
    if rules == "v2":
        scores = score_all_v2(gold, given, None if null_odds is None else _read_numbers(null_odds))
    elif null_odds is not None:
        raise usage_error(f"null odds are for questions without an answer, which the rules of {rules} do not know.")
    else:
        scores = score_all(gold, given, rules)
    return SquadScore(
        rules=rules, scores=scores, missing=len(gold.keys() - given.keys()), unknown=len(given.keys() - gold.keys())
    )


def _texts(example: SpanExample, path: Path) -> Sequence[str]:
    if example.answers is None:
        raise data_error(f"{path}: question {example.id} has no gold answers; there is nothing to score.")
    return example.texts


def _read_answers(path: Path) -> dict[str, str]:
    """A null is no prediction; anything else that is no text is an error."""
    found = _read_object(path)
    wrong = next((id for id, answer in found.items() if not isinstance(answer, str | None)), None)
    if wrong is not None:
        raise data_error(f'{path}: the answer to "{wrong}" is {found[wrong]!r:.40}, not a text.')
    return {id: answer for id, answer in found.items() if isinstance(answer, str)}


def _read_numbers(path: Path) -> dict[str, float]:
    found = _read_object(path)
    wrong = next((id for id, odds in found.items() if not isinstance(odds, int | float)), None)
    if wrong is not None:
        raise data_error(f'{path}: the odds of "{wrong}" are {found[wrong]!r:.40}, not a number.')
    return {id: float(odds) for id, odds in found.items() if isinstance(odds, int | float)}


def _read_object(path: Path) -> Mapping[str, object]:
    content = read_json_file(path)
    if not isinstance(content, dict):
        raise data_error(f"{path} is not one JSON object of id -> answer.")
    return content
