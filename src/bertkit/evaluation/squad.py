"""Prediction files of any program, scored by the rules of SQuAD's and KorQuAD's official programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertkit.errors import data_error, usage_error
from bertkit.metrics.squad import Rules, score_all, score_all_v2
from bertkit.results import Result
from bertkit.task_files.squad_files import read_json_file
from bertkit.task_types import QuestionAnsweringTask, SpanExample

_THRESHOLD = 1.0
"""The ``--na-prob-thresh`` of ``evaluate-v2.0.py`` unless it is given."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SquadScore(Result):
    """``scores`` under the names of the official program, in per cent.

    ``missing`` are the ids of questions without a prediction, which count as wrong; ``unknown`` those of predictions
    for no question in the file, which are ignored. ``without_odds`` are questions that a file of null odds lacks: their
    odds are taken as 0. All are in the order of their files.
    """

    rules: Rules
    scores: dict[str, float]
    missing: list[str]
    unknown: list[str]
    without_odds: list[str] = field(default_factory=list)


def score_predictions(
    questions: Path,
    predictions: Path,
    *,
    null_odds: Path | None = None,
    null_threshold: float | None = None,
    rules: Rules | None = None,
) -> SquadScore:
    """Score a JSON file of predictions: an object of question id -> answer.

    ``null_odds`` is a file of question id -> score that the question has no answer (higher is more likely); an answer
    whose odds are above ``null_threshold`` (None is 1, as in the official program) becomes none. Without ``rules`` they
    are those of SQuAD 2.0 if some question has no answer, else those of 1.1.
    """
    examples = list(QuestionAnsweringTask(name=str(questions), null=True).reader.read(questions))
    gold = {example.id: _texts(example, questions) for example in examples}
    if not gold:
        raise data_error(f"{questions} has no questions: there is nothing to score.")
    rules = rules or ("v2" if any(example.impossible or not example.answers for example in examples) else "v1")
    predicted = _read_answers(predictions)
    odds = None if null_odds is None else _read_numbers(null_odds)
    if null_threshold is not None and odds is None:
        raise usage_error("--null-threshold needs the file of null odds: --null-odds FILE.")
    if rules == "v2":
        scores = score_all_v2(gold, predicted, odds, _THRESHOLD if null_threshold is None else null_threshold)
    elif null_odds is not None:
        raise usage_error(f"--null-odds is for questions without an answer, which {rules} does not have: leave it out.")
    else:
        scores = score_all(gold, predicted, rules)
    return SquadScore(
        rules=rules,
        scores=scores,
        missing=[id for id in gold if id not in predicted],
        unknown=[id for id in predicted if id not in gold],
        without_odds=[] if odds is None else [id for id in gold if id not in odds],
    )


def _texts(example: SpanExample, path: Path) -> Sequence[str]:
    if example.answers is None:
        raise data_error(f"{path}: question {example.id} has no gold answers; there is nothing to score.")
    return example.texts


def _read_answers(path: Path) -> dict[str, str]:
    """The answers by question id; null means no prediction, and any other value that is not a string is an error."""
    found = _read_object(path)
    wrong = next((id for id, answer in found.items() if not isinstance(answer, str | None)), None)
    if wrong is not None:
        raise data_error(f'{path}: the answer to "{wrong}" is {found[wrong]!r:.40}, not a string.')
    return {id: answer for id, answer in found.items() if isinstance(answer, str)}


def _read_numbers(path: Path) -> dict[str, float]:
    found = _read_object(path)
    wrong = next((id for id, odds in found.items() if not _is_number(odds)), None)
    if wrong is not None:
        raise data_error(f'{path}: the odds of "{wrong}" are {found[wrong]!r:.40}, not a number.')
    return {id: float(odds) for id, odds in found.items() if isinstance(odds, int | float)}


def _is_number(value: object) -> bool:
    """Whether a value of a JSON file is a number that a float can hold; 1e999 becomes infinity when it is read."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _read_object(path: Path) -> Mapping[str, object]:
    content = read_json_file(path)
    if not isinstance(content, dict):
        raise data_error(f"{path} is not a JSON object of question id -> answer.")
    return content
