"""Questions about a few sentences, and a model with given answers."""

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
from bertkit.task_types import (
    QuestionAnsweringTask,
    SpanExample,
    SpanPrediction,
)

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
