"""SQuAD scores of prediction files: missing, unknown and invalid predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    rows = [
        {"id": "a", "question": "?", "answers": [{"text": "the mill", "answer_start": 0}], "is_impossible": False},
        {"id": "b", "question": "?", "answers": [], "is_impossible": True},
        {"id": "c", "question": "?", "answers": [{"text": "river", "answer_start": 5}], "is_impossible": False},
    ]
    return write(tmp_path / "dev.json", {"data": [{"paragraphs": [{"context": "the mill river", "qas": rows}]}]})


def test_missing_predictions_are_wrong_and_unknown_ones_are_ignored(questions: Path, tmp_path: Path) -> None:
    given = write(tmp_path / "p.json", {"a": "mill", "c": None, "x": "?", "y": "!"})
    found = bertkit.squad_score(questions, given)
    assert (found.rules, found.missing, found.unknown) == ("v2", ["b", "c"], ["x", "y"])
    assert found.scores["exact"] == pytest.approx(100 / 3)
    assert (found.scores["total"], found.scores["NoAns_exact"]) == (3, 0)


def test_a_question_without_answers_needs_no_mark(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "?", "answers": [{"text": "the mill", "answer_start": 0}]},
        {"id": "b", "question": "?", "answers": []},
    ]
    paragraphs = [{"context": "the mill river", "qas": rows}]
    questions = write(tmp_path / "dev.json", {"data": [{"paragraphs": paragraphs}]})
    found = bertkit.squad_score(questions, write(tmp_path / "p.json", {"a": "the mill", "b": ""}))
    assert (found.rules, found.scores["exact"]) == ("v2", 100)


def test_null_odds_give_scores_at_the_best_threshold(questions: Path, tmp_path: Path) -> None:
    given = write(tmp_path / "p.json", {"a": "mill", "b": "mill", "c": "river"})
    odds = write(tmp_path / "o.json", {"a": -1, "b": 0.5, "c": 0.25})
    found = bertkit.squad_score(questions, given, null_odds=odds)
    assert found.scores["exact"] == pytest.approx(200 / 3)
    assert (found.scores["best_exact"], found.scores["best_exact_thresh"]) == (100, 0.25)


def test_a_null_threshold_replaces_that_of_the_official_program(questions: Path, tmp_path: Path) -> None:
    given = write(tmp_path / "p.json", {"a": "mill", "b": "mill", "c": "river"})
    odds = write(tmp_path / "o.json", {"a": -1, "b": 0.5, "c": 0.25})
    assert bertkit.squad_score(questions, given, null_odds=odds, null_threshold=0.3).scores["exact"] == 100
    none = bertkit.squad_score(questions, given, null_odds=odds, null_threshold=-2).scores
    assert none["exact"] == pytest.approx(100 / 3)
    assert none["NoAns_exact"] == 100
    with pytest.raises(BertkitError, match="needs the file of null odds"):
        bertkit.squad_score(questions, given, null_threshold=0.3)
    with pytest.raises(BertkitError, match="null_threshold is nan"):
        bertkit.squad_score(questions, given, null_odds=odds, null_threshold=float("nan"))


def test_scores_follow_the_chosen_rules(questions: Path, tmp_path: Path) -> None:
    given = write(tmp_path / "p.json", {"a": "mill", "c": "riv"})
    assert bertkit.squad_score(questions, given, rules="v1").scores["f1"] == pytest.approx(100 / 3)
    korean = bertkit.squad_score(questions, given, rules="korquad").scores
    assert korean["f1"] == pytest.approx(100 * (2 * 4 / (4 + 7) + 2 * 3 / (3 + 5)) / 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": 7}, r'p\.json: the answer to "a" is 7, not a string'),
        (["mill"], r"p\.json is not a JSON object of question id -> answer"),
    ],
)
def test_invalid_prediction_files_are_refused(questions: Path, tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        bertkit.squad_score(questions, write(tmp_path / "p.json", content))


def test_invalid_null_odds_are_refused(questions: Path, tmp_path: Path) -> None:
    given = write(tmp_path / "p.json", {"a": "mill"})
    with pytest.raises(BertkitError, match="the odds of \"a\" are 'no', not a number"):
        bertkit.squad_score(questions, given, null_odds=write(tmp_path / "o.json", {"a": "no"}))
    with pytest.raises(BertkitError, match="which v1 does not have"):
        bertkit.squad_score(questions, given, null_odds=write(tmp_path / "o.json", {"a": 1}), rules="v1")


def test_a_file_without_questions_has_no_score(tmp_path: Path) -> None:
    dev, given = write(tmp_path / "dev.json", {"data": []}), write(tmp_path / "p.json", {"a": "mill"})
    with pytest.raises(BertkitError, match=r"dev\.json has no questions"):
        bertkit.squad_score(dev, given)


def test_questions_without_gold_answers_cannot_be_scored(tmp_path: Path) -> None:
    content = {"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "a", "question": "?"}]}]}]}
    dev, given = write(tmp_path / "dev.json", content), write(tmp_path / "p.json", {"a": "mill"})
    with pytest.raises(BertkitError, match="question a has no gold answers"):
        bertkit.squad_score(dev, given)
