"""What every task about questions must do, on small files in SQuAD's own layout."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.task_types.small_questions import CONTEXT, TASKS, answer
from tests.task_types.small_questions import name as name
from tests.task_types.small_questions import task as task

from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.task_types import QuestionAnsweringTask, SpanExample, SpanPrediction, from_record


@pytest.mark.parametrize("max_length", [384, 37, 17])
def test_gold_answers_score_perfectly(task: QuestionAnsweringTask, tokenizer: Tokenizer, max_length: int) -> None:
    task = replace(task, max_length=max_length, stride=5)
    examples = task.examples("dev")
    assert len(examples) == 13
    predictions = [answer(task, example, tokenizer) for example in examples]
    assert [each.text for each in predictions] == [example.label for example in examples]
    for example, prediction in zip(examples, predictions, strict=True):
        assert (prediction.start is None) == (example.label == "")
        if prediction.text:
            assert example.context[prediction.start : prediction.end] == prediction.text
            assert prediction.score == prediction.n_best[0].probability > 0.9
    scores = task.score(examples, predictions)
    assert task.metric in scores
    assert all(score == pytest.approx(1.0) for score in scores.values())


def test_a_constant_answer_scores_a_share(task: QuestionAnsweringTask) -> None:
    scores = task.score(task.examples("dev"), [SpanPrediction("old stone mill")] * 13)
    assert all(0 <= score < 1 for score in scores.values())
    assert scores["f1"] > 0


def test_unlabelled_questions_are_encoded_and_not_scored(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    example = SpanExample("x", "Who?", CONTEXT)
    for feature in task.encode(example, tokenizer):
        assert feature.labels["span"].tolist() == [IGNORE, IGNORE]  # type: ignore[union-attr]
    with pytest.raises(BertkitError, match="question x has no gold answer"):
        task.score([example], [SpanPrediction("")])


@pytest.mark.parametrize(("rules", "metric"), [("v1", "exact"), ("v2", "exact_match")])
def test_the_exact_score_has_the_name_that_its_program_gives(rules: Any, metric: str) -> None:
    with pytest.raises(BertkitError, match=f"metric is {metric}; the scores of q are f1, exact"):
        QuestionAnsweringTask(name="q", rules=rules, metric=metric)


def test_gradients_reach_every_parameter_of_the_head(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=13, num_layers=1, num_heads=1, intermediate_size=7))
    model = Model(encoder, task.objectives(encoder))
    features = [feature for example in task.examples("train") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    (term,) = model.loss(model(batch), batch).values()
    term.sum.backward()  # type: ignore[no-untyped-call]
    assert term.count == 2 * 13
    for parameter in model.objectives.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_the_record_is_json_and_comes_back_equal(task: QuestionAnsweringTask) -> None:
    changed = replace(task, threshold=-1.75)
    assert from_record(json.loads(json.dumps(changed.record()))) == changed


def test_without_its_folder_it_names_both_ways_to_give_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTKIT_DATA", raising=False)
    with pytest.raises(BertkitError, match="--data DIR, or set BERTKIT_DATA to the folder that holds"):
        TASKS[name].examples("train")


def test_a_prediction_is_described_with_its_n_best(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    example = task.examples("dev")[3]
    record = task.describe(example, answer(task, example, tokenizer))
    assert record["id"] == "q3"
    assert record["answer"] == CONTEXT[record["start"] : record["end"]] == "the miller"
    assert record["n_best"][0]["text"] == "the miller"
    assert ("null_odds" in record) == task.null
    texts = [each["text"] for each in record["n_best"]]
    assert len(set(texts)) == len(texts) <= 20
    json.dumps(record)
