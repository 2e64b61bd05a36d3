"""Windows of a question and its context."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bertkit import lookup as names
from bertkit.batch import Feature
from bertkit.contracts import Tokenizer
from bertkit.task_types import QuestionAnsweringTask, SpanExample, SpanPrediction

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


def test_windows_without_the_answer_point_at_cls_and_are_kept(
    task: QuestionAnsweringTask, tokenizer: Tokenizer
) -> None:
    task = replace(task, max_length=17, stride=5)
    features = task.encode(task.examples("train")[0], tokenizer)
    labels = [feature.labels["span"].tolist() for feature in features]  # type: ignore[union-attr]
    assert len(features) > 2
    assert labels[0] == [6, 6], "[CLS] What , 0 ? [SEP] Seven"
    assert labels[2:] == [[0, 0]] * (len(features) - 2)
    assert all(len(feature) <= 17 for feature in features)


def test_questions_are_cut_from_their_end(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    long = SpanExample("x", "why " * 99 + "then", CONTEXT)
    (feature,) = task.encode(long, tokenizer)
    assert int((feature.segment_ids == 0).sum()) == task.max_query + 2
    assert feature.num_truncated == 100 - task.max_query
    assert (
        task.decode(
            long, [feature], sure_outputs([replace(feature, labels={"span": np.array([70, 70])})])
        ).num_truncated
        == 36
    )


def test_encoding_together_is_encoding_one_by_one(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("train")
    together = list(task.encode_all(examples, tokenizer))
    assert [example for example, _ in together] == examples
    for example, features in together:
        for feature, encoded in zip(features, task.encode(example, tokenizer), strict=True):
            assert np.array_equal(feature.input_ids, encoded.input_ids)
            assert np.array_equal(feature.segment_ids, encoded.segment_ids)
            assert np.array_equal(feature.labels["span"], encoded.labels["span"])
