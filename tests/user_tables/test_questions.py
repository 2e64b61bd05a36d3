"""A user's own questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_types import QuestionAnsweringTask, TextClassificationTask
from bertkit.user_tables.guess import guess

_CONTEXT = "The mill stood by the river."


def _write(path: Path, answers: list[list[str]]) -> Path:
    questions = [
        {
            "id": f"{number}",
            "question": "What stood?",
            "answers": [{"text": text, "answer_start": 4} for text in each],
            "is_impossible": not each,
        }
        for number, each in enumerate(answers)
    ]
    content = {"data": [{"title": "", "paragraphs": [{"context": _CONTEXT, "qas": questions}]}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_model_may_say_that_there_is_no_answer_where_some_questions_have_none(tmp_path: Path) -> None:
    found = guess(_write(tmp_path / "own.json", [["mill"], [], ["mill"]]))
    assert isinstance(found.task, QuestionAnsweringTask)
    assert (found.task.null, found.task.rules) == (True, "v2")
    assert found.sentence == "3 questions about 1 context, 1 of them without an answer"


def test_every_question_has_an_answer_where_all_of_train_have(tmp_path: Path) -> None:
    task = guess(_write(tmp_path / "own.json", [["mill"], ["mill"]])).task
    assert isinstance(task, QuestionAnsweringTask)
    assert (task.null, task.rules) == (False, "v1")


@pytest.mark.parametrize(("has_dev", "heldout"), [(True, 0.0), (False, 0.1)])
def test_a_tenth_is_held_out_without_a_dev_file(tmp_path: Path, has_dev: bool, heldout: float) -> None:
    train = _write(tmp_path / "train.json", [["mill"]])
    dev = _write(tmp_path / "dev.json", [["mill"]]) if has_dev else None
    task = guess(train, dev=dev).task
    assert isinstance(task, QuestionAnsweringTask)
    assert task.heldout == heldout


def test_answers_that_occur_more_than_once_need_their_place(tmp_path: Path) -> None:
    rows = [f"who is in row {number}?,Ann{number} is here. Ann{number} again,Ann{number}" for number in range(40)]
    path = tmp_path / "twice.csv"
    path.write_text("\n".join(["question,context,answer", *rows]))
    with pytest.raises(BertkitError, match=r"occurs more than once in its context.*Add a column answer_start"):
        guess(path)


def test_answers_that_no_context_has_are_classes(tmp_path: Path) -> None:
    path = tmp_path / "yes-no.csv"
    rows = [f"is mill {number} old?,mill {number} by the river,{('yes', 'no')[number % 2]}" for number in range(40)]
    path.write_text("\n".join(["question,context,answer", *rows]))
    with pytest.raises(BertkitError, match=r"no answer is a part of its context.*--text question --pair context"):
        guess(path)
    task = guess(path, text="question", pair="context", label="answer").task
    assert isinstance(task, TextClassificationTask)
    assert task.labels == ("no", "yes")


def test_columns_of_questions_with_capitals_are_to_be_renamed(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("Question,Context,Answer\n" + f"What stood?,{_CONTEXT},mill\n" * 20)
    with pytest.raises(BertkitError, match="for questions rename them to question, context and answer, in lower case"):
        guess(path)
