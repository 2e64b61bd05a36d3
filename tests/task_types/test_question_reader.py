"""Questions from files and lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bertkit import lookup as names
from bertkit.batch import Feature
from bertkit.contracts import Tokenizer
from bertkit.errors import BertkitError
from bertkit.task_types import (
    QuestionAnsweringTask,
    SpanExample,
    SpanPrediction,
)
from bertkit.task_types.user_tables import guess

TASKS: dict[str, QuestionAnsweringTask] = names.values("tasks", QuestionAnsweringTask)


CONTEXT = "Seven wide rivers ran slowly past the old stone mill before dawn; nobody (not even the miller) saw them. "


ANSWERS = ["Seven", "rivers ran", "mill", "the miller", "dawn"]


@pytest.fixture(params=TASKS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def squad(rows: Sequence[Mapping[str, Any]], context: str = CONTEXT) -> dict[str, Any]:
    return {"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": context, "qas": list(rows)}]}]}


def row(number: int, answer: str | None) -> dict[str, Any]:
    answers = [] if answer is None else [{"text": answer, "answer_start": CONTEXT.index(answer)}]
    return {"id": f"q{number}", "question": f"What, {number}?", "answers": answers, "is_impossible": answer is None}


@pytest.fixture
def task(name: str, tmp_path: Path) -> QuestionAnsweringTask:
    """Thirteen questions in train and dev; every third has no answer where the task has such."""
    task = TASKS[name]
    for split in task.files.splits.values():
        rows = [row(n, None if task.null and n % 3 == 1 else ANSWERS[n % 5]) for n in range(13)]
        (tmp_path / split.files[0]).write_text(json.dumps(squad(rows)), encoding="utf-8")
    return task.at(tmp_path)


def sure_outputs(features: Sequence[Feature]) -> list[dict[str, NDArray[np.float64]]]:
    """What a model would say that is sure of the labels."""
    outputs = []
    for feature in features:
        start, end = np.full(len(feature), -5.0), np.full(len(feature), -5.0)
        label = feature.labels["span"]
        assert isinstance(label, np.ndarray)
        start[label[0]], end[label[1]] = 9.0, 9.0
        outputs.append({"start": start, "end": end})
    return outputs


def answer(task: QuestionAnsweringTask, example: SpanExample, tokenizer: Tokenizer) -> SpanPrediction:
    features = task.encode(example, tokenizer)
    return task.decode(example, features, sure_outputs(features))


def test_questions_about_one_context_are_held_out_together(tmp_path: Path) -> None:
    content = squad([])
    content["data"][0]["paragraphs"] = [
        {"context": f"{CONTEXT} {n}", "qas": [row(7 * n + k, ANSWERS[k % 5]) for k in range(7)]} for n in range(20)
    ]
    (tmp_path / "t.json").write_text(json.dumps(content), encoding="utf-8")
    task = guess(tmp_path / "t.json").task
    train, dev = ({example.context for example in task.examples(split)} for split in ("train", "dev"))
    assert (len(train), len(dev)) == (18, 2)
    assert not train & dev
    assert any("14 of 140 questions are held out" in note for note in task.reader.notes())


TASK = QuestionAnsweringTask(name="files:t.json", null=True, rules="v2", max_length=23, stride=5)


def test_lines_of_a_stream() -> None:
    for line in ('{"id": "7", "question": "who?", "context": "the miller"}', "who?\tthe miller"):
        example = TASK.reader.read_line("7", line)
        assert example == SpanExample("7", "who?", "the miller")
    with pytest.raises(BertkitError, match='line 3: not a JSON object with "question" and "context"'):
        TASK.reader.read_line("3", '{"question": "who?"}')
