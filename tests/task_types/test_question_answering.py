"""What every task about questions must do, on small files in SQuAD's own layout."""

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
from bertkit.batch import IGNORE, Feature
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.task_types import AnswerSpan, QuestionAnsweringTask, SpanExample, SpanPrediction, from_record
from bertkit.task_types.squad_files import Answer
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


def test_the_name_is_what_the_user_types(name: str) -> None:
    assert TASKS[name].name == name
    assert TASKS[name].about.endswith(".")


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


def test_all_at_once_is_one_by_one(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("train")
    together = list(task.encode_all(examples, tokenizer))
    assert [example for example, _ in together] == examples
    for example, features in together:
        for ours, theirs in zip(features, task.encode(example, tokenizer), strict=True):
            assert np.array_equal(ours.input_ids, theirs.input_ids)
            assert np.array_equal(ours.segment_ids, theirs.segment_ids)
            assert np.array_equal(ours.labels["span"], theirs.labels["span"])


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


def test_what_a_file_of_predictions_says(task: QuestionAnsweringTask, tokenizer: Tokenizer) -> None:
    example = task.examples("dev")[3]
    record = task.describe(example, answer(task, example, tokenizer))
    assert record["id"] == "q3"
    assert record["answer"] == CONTEXT[record["start"] : record["end"]] == "the miller"
    assert record["n_best"][0]["text"] == "the miller"
    assert ("null_odds" in record) == task.null
    texts = [each["text"] for each in record["n_best"]]
    assert len(set(texts)) == len(texts) <= 20
    json.dumps(record)


def test_no_answer_has_the_lowest_score_of_all_windows() -> None:
    task = replace(TASKS["squad:v2"], max_length=11, stride=3)
    example = SpanExample("x", "Who?", "one two three four five six seven eight")
    features = [
        Feature(
            input_ids=np.zeros(11, dtype=np.int64),
            segment_ids=np.repeat([0, 1], [4, 7]),
            offsets=np.array([(0, 0)] * 4 + [(place, place + 3) for place in range(first, first + 6)] + [(0, 0)]),
        )
        for first in (0, 3)
    ]
    outputs = [{"start": np.zeros(11), "end": np.zeros(11)} for _ in features]
    outputs[0]["start"][0], outputs[1]["start"][0], outputs[1]["end"][0] = 7.0, 1.0, 2.0
    outputs[0]["start"][5] = outputs[0]["end"][5] = 0.75
    prediction = task.decode(example, features, outputs)
    assert prediction.null_odds == pytest.approx(3.0 - 1.5)
    assert prediction.text == ""
    assert prediction.score == pytest.approx(1 - sum(each.probability for each in prediction.n_best))
    assert replace(task, threshold=1.75).decode(example, features, outputs).text == prediction.n_best[0].text != ""


def guessed(odds: float, text: str = "mill") -> SpanPrediction:
    return SpanPrediction(text, (AnswerSpan(text, 0, len(text), 0.5),), odds)


def test_the_threshold_is_set_where_f1_is_highest() -> None:
    task = TASKS["squad:v2"]
    found = [("mill", -3.0), ("old mill", -2.0), ("", -1.0), ("mill", -0.6), ("mill", -0.5), ("", 0.5), ("", 2.0)]
    examples = [
        SpanExample(str(n), "?", "old mill", (Answer(text, 0),) if text else (), impossible=not text)
        for n, (text, _) in enumerate(found)
    ]
    predictions = [guessed(odds) for _, odds in found]
    calibrated, decided = task.calibrate(examples, predictions)
    assert calibrated.threshold == pytest.approx(0.0), "between -0.5 and 0.5"
    assert [each.text for each in decided] == ["mill"] * 5 + [""] * 2
    best = calibrated.score(examples, decided)["f1"]
    for threshold in (-9.0, -2.5, -1.5, -0.75, 1.0, 9.0):
        other = [replace(task, threshold=threshold).decoder.decide(each) for each in predictions]
        assert task.score(examples, other)["f1"] < best


def test_answering_nothing_can_be_best() -> None:
    examples = [SpanExample(str(n), "?", "old mill", (), impossible=True) for n in range(3)]
    calibrated, decided = TASKS["squad:v2"].calibrate(examples, [guessed(odds) for odds in (-7.0, -7.0, 3.0)])
    assert calibrated.threshold < -7
    assert [each.text for each in decided] == ["", "", ""]


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
