"""The columns of a table of choices, and how the right one is written."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_files.choice_columns import find_choices
from bertkit.task_types import MultipleChoiceTask
from bertkit.task_types.multiple_choice import Choice
from bertkit.user_tables.guess import guess


def write_csv(path: Path, header: Sequence[str], *rows: Sequence[object]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.mark.parametrize(
    ("labels", "spelling"),
    [(("0", "2"), "number"), (("1", "3"), "number from 1"), (("A", "C"), "letter"), (("red", "hue"), "text")],
)
def test_the_spelling_of_the_label_is_guessed(tmp_path: Path, labels: tuple[str, str], spelling: str) -> None:
    rows = [("which?", "red", "green", "blue", labels[0]), ("and now?", "dye", "ink", "hue", labels[1])]
    found = guess(write_csv(tmp_path / "t.csv", ["question", "A", "B", "C", "answer"], *rows))
    assert isinstance(found.task, MultipleChoiceTask)
    assert found.task.spelling == spelling
    assert [example.label for example in found.task.reader.rows("train")] == [0, 2]


def test_choices_may_have_letters_in_their_names(tmp_path: Path) -> None:
    rows = [("which?", "red", "green", "green"), ("and now?", "dye", "ink", "dye")]
    found = guess(write_csv(tmp_path / "t.csv", ["question", "option_b", "option_a", "label"], *rows))
    assert isinstance(found.task, MultipleChoiceTask)
    assert found.task.choices == ("option_a", "option_b")
    assert [example.label for example in found.task.reader.rows("train")] == [0, 1]


@pytest.mark.parametrize(
    "names", [("answerA", "answerB", "answerC"), ("opa", "opb"), ("opt1", "opt2"), ("option 1", "option 2")]
)
def test_choices_of_published_tables_are_found(names: tuple[str, ...]) -> None:
    assert find_choices(["question", *names, "label"]) == names


def test_whole_numbers_of_pandas_name_choices(tmp_path: Path) -> None:
    rows = [("which?", "red", "green", "0.0"), ("and now?", "dye", "ink", "1.0")]
    found = guess(write_csv(tmp_path / "t.csv", ["question", "A", "B", "label"], *rows))
    assert [example.label for example in found.task.reader.rows("train")] == [0, 1]


@pytest.mark.parametrize(
    ("passage", "choices"),
    [("premise", ("choice1", "choice2")), ("article", ("A", "B")), ("context", ("answer0", "answer1"))],
)
def test_a_question_about_a_passage_begins_the_choices(tmp_path: Path, passage: str, choices: Sequence[str]) -> None:
    """COPA, RACE and CosmosQA."""
    rows = [
        ("It rained.", "Why?", "it was cold", "it was wet", "0", "x"),
        ("He left.", "When?", "now", "then", "1", "y"),
    ]
    found = guess(write_csv(tmp_path / "t.csv", [passage, "question", *choices, "label", "source"], *rows))
    assert f"prompt = {passage}, beginning of the choices = question" in found.sentence
    assert found.sentence.endswith("; not read: source")
    (first, _) = found.task.reader.rows("train")
    assert (first.prompt, first.stem, first.choices) == ("It rained.", "Why?", ("it was cold", "it was wet"))


def test_json_lists_may_differ_in_length(tmp_path: Path) -> None:
    records = [{"prompt": "p", "choices": ["a", "b"], "label": 0}, {"prompt": "q", "choices": list("abc"), "label": 2}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    found = guess(tmp_path / "t.jsonl")
    assert "choices = choices (2 to 3 each)" in found.sentence
    assert [(each.choices, each.label) for each in found.task.reader.rows("train")] == [
        (("a", "b"), 0),
        (("a", "b", "c"), 2),
    ]


def test_the_lists_of_arc_are_choices(tmp_path: Path) -> None:
    choices = {"text": ["small", "large"], "label": ["A", "B"]}
    (tmp_path / "t.jsonl").write_text(json.dumps({"question": "q", "choices": choices, "answerKey": "B"}) + "\n")
    (example,) = guess(tmp_path / "t.jsonl").task.reader.rows("train")
    assert (example.choices, example.label) == (("small", "large"), 1)


def test_rows_of_arc_have_keys_of_their_own(tmp_path: Path) -> None:
    rows = [(["A", "B"], "B"), (["1", "2"], "1"), (["1", "2"], "2"), ([1, 2], 2)]
    records = [
        {"question": "q", "choices": {"text": ["small", "large"], "label": keys}, "answerKey": key}
        for keys, key in rows
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    found = guess(tmp_path / "t.jsonl")
    examples = list(found.task.reader.rows("train"))
    assert [each.label for each in examples] == [1, 0, 1, 1]
    assert "the letter of the right one" in found.sentence
    right = [found.task.describe(each, Choice(each.label, "", (0.5, 0.5)))["label"] for each in examples]
    assert right == ["B", "1", "2", "2"]


def test_choices_may_have_null_in_place_of_keys(tmp_path: Path) -> None:
    row = {"question": "q", "choices": {"text": ["small", "large"], "label": None}, "answer": "large"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    (example,) = guess(tmp_path / "t.jsonl").task.reader.rows("train")
    assert (example.choices, example.label) == (("small", "large"), 1)


def test_choices_without_a_key_each_are_an_error(tmp_path: Path) -> None:
    choices = {"text": ["small", "large"], "label": ["A"]}
    (tmp_path / "t.jsonl").write_text(json.dumps({"question": "q", "choices": choices, "answerKey": "A"}) + "\n")
    with pytest.raises(BertkitError, match=r"line 1: the choices need one label each: 2 texts, \['A'\]"):
        guess(tmp_path / "t.jsonl")


def test_texts_with_numbers_name_choices(tmp_path: Path) -> None:
    rows = [
        ("q", "1.5", "15", "1.5"),
        ("q", "2.0", "2", "2.0"),
        ("q", "$3.00", "$300", "$3.00"),
        ("q", "He was born in 1990.", "He was not.", "He was born in 1990."),
    ]
    found = guess(write_csv(tmp_path / "t.csv", ["prompt", "choice0", "choice1", "label"], *rows))
    assert [each.label for each in found.task.reader.rows("train")] == [0, 0, 0, 0]


def test_a_row_of_a_csv_may_have_fewer_choices(tmp_path: Path) -> None:
    rows = [("q", "a", "b", "", "1"), ("r", "c", "d", "e", "2")]
    found = guess(write_csv(tmp_path / "t.csv", ["prompt", "choice0", "choice1", "choice2", "label"], *rows))
    assert "(2 to 3 each)" in found.sentence
    assert [(each.choices, each.label) for each in found.task.reader.rows("train")] == [
        (("a", "b"), 1),
        (("c", "d", "e"), 2),
    ]


def test_a_list_is_no_prompt(tmp_path: Path) -> None:
    record = {"prompt": ["p", "q"], "choices": ["a", "b"], "label": 0}
    (tmp_path / "t.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r't\.jsonl, line 1: "prompt" is .*, not a text'):
        guess(tmp_path / "t.jsonl")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("p", "a", "b", "4"), r't\.csv, line 3: label "4" is none of the 2 choices, 0 to 1'),
        (("p", "a", "b", "-1"), r't\.csv, line 3: label "-1" is none of the 2 choices'),
        (("p", "a", " ", "0"), r"t\.csv, line 3: choice 1 of 0 to 1 is empty"),
    ],
)
def test_a_wrong_row_is_an_error_with_its_line(tmp_path: Path, row: Sequence[str], message: str) -> None:
    path = write_csv(tmp_path / "t.csv", ["prompt", "choice0", "choice1", "label"], ("o", "a", "b", "0"), row)
    with pytest.raises(BertkitError, match=message):
        guess(path)
