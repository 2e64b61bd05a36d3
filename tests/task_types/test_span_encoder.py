"""Windows of a question and its context."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.task_types.small_questions import CONTEXT, sure_outputs
from tests.task_types.small_questions import name as name
from tests.task_types.small_questions import task as task

from bertkit.contracts import Tokenizer
from bertkit.task_types import QuestionAnsweringTask, SpanExample


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


def test_a_question_leaves_half_of_a_short_window(tokenizer: Tokenizer) -> None:
    task = QuestionAnsweringTask(name="q", max_length=20)
    assert task.max_query > task.max_length
    features = task.encode(SpanExample("0", "why " * 100, "the mill " * 30), tokenizer)
    assert {int((each.segment_ids == 0).sum()) for each in features} == {12}
    assert all(len(each) <= 20 for each in features)
    assert features[0].num_truncated == 90
    assert "half of max_length: --set task.max_length=40" in task.advise_on_truncation(512)
