"""Exports of Label Studio are tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.label_studio import flatten_task, is_labelled_task, list_questions
from bertkit.task_types import MultiLabelTask, TaggingTask, TextClassificationTask
from bertkit.user_tables.guess import guess


def mark(text: str, word: str, label: str, *, place: int | None = None) -> dict[str, Any]:
    start = text.index(word) if place is None else place
    value = {"start": start, "end": start + len(word), "text": word, "labels": [label]}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}


def choose(*choices: str) -> dict[str, Any]:
    return {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": list(choices)}}


def task(id: int, text: str, *annotations: list[dict[str, Any]], **more: object) -> dict[str, Any]:
    done = [{"id": 7, "result": result, "was_cancelled": False} for result in annotations]
    return {"id": id, "data": {"text": text, **more}, "annotations": done, "project": 3}


def test_choices_are_the_label_and_marks_the_entities() -> None:
    assert flatten_task(task(5, "a mill", [choose("old")], author="me")) == {
        "id": 5,
        "text": "a mill",
        "author": "me",
        "label": "old",
        "entities": [],
    }
    assert flatten_task(task(5, "a mill", [choose("old", "odd")]))["label"] == ["old", "odd"]
    assert flatten_task(task(5, "Ann ran", [mark("Ann ran", "Ann", "PER")]))["entities"] == [[0, 3, "PER"]]
    assert flatten_task(task(5, "a mill", []))["entities"] == [], "somebody has found none"


def test_a_task_that_nobody_finished_has_no_label() -> None:
    assert flatten_task(task(5, "a mill")) == {"id": 5, "text": "a mill", "label": None, "entities": None}
    cancelled = task(5, "a mill", [choose("old")], [choose("new")])
    cancelled["annotations"][0]["was_cancelled"] = True
    assert flatten_task(cancelled)["label"] == "new"
    assert not is_labelled_task({"data": "text", "annotations": []})


def test_a_field_of_the_data_keeps_its_value_where_nobody_answered() -> None:
    marked = task(1, "Ann ran", [mark("Ann ran", "Ann", "PER")], label="gold")
    assert flatten_task(marked) == {"id": 1, "text": "Ann ran", "label": "gold", "entities": [[0, 3, "PER"]]}
    assert flatten_task(task(1, "Ann ran", [choose("old")], label="gold"))["label"] == "old"


def test_several_questions_have_a_column_each() -> None:
    topic = {**choose("news", "sport"), "from_name": "area"}
    tasks = [task(1, "a mill", [choose("old"), topic]), task(2, "a lake", [choose("new")]), task(3, "a hill")]
    questions = list_questions(tasks)
    assert questions == ["mood", "area"]
    answers = [[flatten_task(each, questions)[name] for name in questions] for each in tasks]
    assert answers == [["old", ["news", "sport"]], ["new", None], [None, None]]
    assert "label" not in flatten_task(tasks[0], questions)


def test_the_question_is_asked_for_where_there_are_several(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    topics = [{**choose("news" if row % 3 else "sport"), "from_name": "area"} for row in range(40)]
    tasks = [task(row, f"text {row}", [choose("old" if row % 2 else "new"), topics[row]]) for row in range(40)]
    path.write_text(json.dumps(tasks))
    with pytest.raises(BertkitError, match="the label may be mood or area"):
        guess(path)
    assert guess(path, label="area").task.labels == ("news", "sport")


@pytest.mark.parametrize("result", [None, 7, [None], [{"value": 7}], [{"value": {"choices": "old", "labels": 7}}]])
def test_what_is_no_result_marks_nothing(result: Any) -> None:
    assert flatten_task(task(5, "a mill", result))["entities"] == []


def test_places_after_an_emoji_are_characters() -> None:
    text = "🙂 Ann ran"
    found = flatten_task(task(5, text, [mark(text, "Ann", "PER", place=3)]))  # as JavaScript counts
    assert found["entities"] == [[2, 5, "PER"]]


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_an_export_is_a_task(tmp_path: Path, suffix: str) -> None:
    def write(tasks: list[dict[str, Any]]) -> Path:
        path = tmp_path / f"export{suffix}"
        lines = json.dumps(tasks) if suffix == ".json" else "\n".join(map(json.dumps, tasks))
        path.write_text(lines)
        return path

    moods = [
        task(n, f"mill {n} {'was' if n % 2 else 'is'} here", [choose("old" if n % 2 else "new")]) for n in range(40)
    ]
    found = guess(write(moods)).task
    assert isinstance(found, TextClassificationTask)
    assert found.labels == ("new", "old")
    several = [task(n, f"mill {n}", [choose(*(("a", "b")[: n % 3]))] if n % 3 else []) for n in range(40)]
    assert isinstance(guess(write(several), kind="labels").task, MultiLabelTask)
    names = [task(n, f"Ann{n} met Bob here", [mark(f"Ann{n} met Bob here", "Bob", "PER")]) for n in range(20)]
    tagged = guess(write([*names, task(98, "Nobody here", []), task(99, "Not read yet")])).task
    assert isinstance(tagged, TaggingTask)
    assert sum(len(each) for each in (tagged.examples("train"), tagged.examples("dev"))) == 21
