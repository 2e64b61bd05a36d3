"""Evaluations of made-up predictions, whose scores and errors can be computed by hand or by the task."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.clock import processor_seconds

from bertkit.batch import Feature
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.evaluation.page import render_page
from bertkit.evaluation.report import evaluate_predictions
from bertkit.task_files.squad_files import GoldAnswer
from bertkit.task_types import (
    FileTask,
    MultiLabelTask,
    Prediction,
    QuestionAnsweringTask,
    RegressionTask,
    SpanExample,
    SpanPrediction,
    TextClassificationTask,
    TextExample,
)
from bertkit.task_types.reader import Reader

CLASSES = TextClassificationTask(name="moods", metric="accuracy", also=("macro_f1", "matthews"), labels=("sad", "glad"))
NUMBERS = RegressionTask(name="marks", metric="pearson", also=("spearman",))
SEVERAL = MultiLabelTask(name="topics", labels=("sea", "sky"))


def make_examples(*golds: Any) -> list[TextExample]:
    return [TextExample(f"n{place}", " ".join(["word"] * (place + 1)), None, gold) for place, gold in enumerate(golds)]


def predict(label: str, sure: float) -> Prediction:
    other = "glad" if label == "sad" else "sad"
    return Prediction(label, {label: sure, other: 1 - sure})


def test_classes_have_scores_confusion_calibration_and_worst_examples() -> None:
    examples = make_examples("sad", "sad", "glad", "glad", "glad")
    answers = [
        predict("sad", 0.9),
        predict("glad", 0.7),
        predict("glad", 0.6),
        predict("sad", 0.95),
        predict("glad", 0.8),
    ]
    found = evaluate_predictions(CLASSES, "dev", examples, answers, notes=["a note"])
    assert (found["accuracy"], found.examples, found.resamples) == (0.6, 5, 1000)
    assert dict(found) == CLASSES.score(examples, answers)
    assert list(found.scores) == list(found) == ["accuracy", "macro_f1", "matthews"]
    assert all(score.low <= score.value <= score.high for score in found.scores.values())
    assert found.classes is not None and found.classes.confusion == [[1, 1], [1, 2]]
    assert [(each.name, each.support) for each in found.classes.rows] == [("sad", 2), ("glad", 3)]
    assert [(report.id, report.error) for report in found.worst] == [("n3", 0.95), ("n1", 0.7)]
    assert found.calibration is not None and sum(each.count for each in found.calibration.bins) == 5
    assert found.notes == ["a note"]
    assert found.to_dict()["accuracy"] == 0.6 and found.to_dict()["scores"]["accuracy"]["value"] == 0.6


def test_worst_examples_of_a_regression_begin_with_the_largest_error() -> None:
    found = evaluate_predictions(
        NUMBERS, "dev", make_examples(1.0, 2.0, 3.0), [Prediction(1.5), Prediction(2.0), Prediction(-1.0)]
    )
    assert [(report.id, report.error, report.answer) for report in found.worst] == [
        ("n2", 4.0, "-1"),
        ("n0", 0.5, "1.5"),
    ]
    assert found.classes is None and found.calibration is None


def test_a_correlation_with_constant_answers_is_undefined_everywhere() -> None:
    """Null in JSON, a word in the page; it was 0.0, as if the answers had been measured to be unrelated."""
    found = evaluate_predictions(NUMBERS, "dev", make_examples(1.0, 2.0, 3.0), [Prediction(2.5)] * 3)
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["pearson"] is None and record["scores"]["spearman"] == {"value": None, "low": None, "high": None}
    assert str(found.scores["pearson"]) == "undefined"
    page = render_page(found, model="m", date="2026-11-22 10:00")
    assert page.count("undefined") >= 8 and "nan" not in page


def test_multi_label_predictions_are_scored_per_label() -> None:
    examples = make_examples(("sea",), (), ("sea", "sky"))
    answers = [Prediction(("sea",)), Prediction(("sky",)), Prediction(("sea", "sky"))]
    found = evaluate_predictions(SEVERAL, "dev", examples, answers)
    assert found == SEVERAL.score(examples, answers)
    assert [(report.id, report.gold, report.answer) for report in found.worst] == [("n1", "none", "sky")]
    assert found.scores["subset_accuracy"].low < 2 / 3 < found.scores["subset_accuracy"].high
    assert [(each.name, each.precision, each.recall, each.support) for each in found.parts] == [
        ("sea", 1.0, 1.0, 2),
        ("sky", 0.5, 1.0, 1),
    ]
    assert '<td class="number" data-label="precision">0.5000</td>' in render_page(
        found, model="a", date="2026-11-22 10:00"
    )


def test_length_buckets_double() -> None:
    examples = make_examples(*["sad"] * 37)
    found = evaluate_predictions(
        CLASSES, "dev", examples, [predict("sad" if place < 8 else "glad", 0.9) for place in range(37)]
    )
    assert [(each.shortest, each.longest, each.examples) for each in found.lengths] == [
        (0, 8, 8),
        (9, 16, 8),
        (17, 32, 16),
        (33, 64, 5),
    ]
    assert [each.score.value for each in found.lengths] == [1, 0, 0, 0]


def test_truncated_texts_are_noted() -> None:
    answers = [
        replace(predict("sad", 0.9), num_truncated=7),
        replace(predict("sad", 0.9), num_truncated=6),
        predict("sad", 0.9),
    ]
    found = evaluate_predictions(CLASSES, "dev", make_examples("sad", "sad", "glad"), answers)
    assert found.notes == ["2 of 3 texts were truncated at the end, by 13 tokens in all"]


def test_truncated_questions_are_not_called_texts() -> None:
    task = QuestionAnsweringTask(name="q", metric="f1")
    example = SpanExample(id="1", question="who?", context="Ada was here.", answers=(GoldAnswer("Ada", 0),))
    found = evaluate_predictions(task, "dev", [example], [SpanPrediction("Ada", num_truncated=7)])
    assert found.notes == ["1 of 1 question was truncated at the end, by 7 tokens in all"]


@pytest.mark.parametrize(("answer", "interval"), [("sad", (0.2065, 1)), ("glad", (0, 0.7935))])
def test_a_single_example_can_be_evaluated(answer: str, interval: tuple[float, float]) -> None:
    found = evaluate_predictions(CLASSES, "dev", make_examples("sad"), [predict(answer, 0.7)])
    assert (found.scores["accuracy"].low, found.scores["accuracy"].high) == pytest.approx(interval, abs=1e-4)


@dataclass(frozen=True)
class _Passage:
    id: str
    question: str
    words: tuple[str, ...]
    label: tuple[str, ...]


@dataclass(frozen=True)
class _Span:
    text: str
    label: None = None


class _Spans(FileTask[_Passage, _Span]):
    """A type of its own: examples and predictions of unknown classes, and a score that is not a mean."""

    @property
    def reader(self) -> Reader[_Passage]:
        raise NotImplementedError

    def encode(self, example: _Passage, tokenizer: Tokenizer) -> list[Feature]:
        raise NotImplementedError

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        raise NotImplementedError

    def decode(self, example: _Passage, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> _Span:
        raise NotImplementedError

    def describe(self, example: Any, prediction: Any) -> dict[str, Any]:
        return {"id": example.id, "text": prediction.text}

    def score(self, examples: Iterable[Any], predictions: Iterable[Any]) -> dict[str, float]:
        right = [prediction.text in example.label for example, prediction in zip(examples, predictions, strict=True)]
        return {"exact": sum(right) / len(right), "best_half": sum(sorted(right)[len(right) // 2 :]) / len(right)}


def test_a_task_of_an_unknown_type_has_scores_lengths_and_worst_examples() -> None:
    task = _Spans(name="spans", metric="exact")
    examples = [_Passage(f"n{place}", "where <b>", ("by", "the", "mill"), ("mill",)) for place in range(13)]
    answers = [_Span("mill" if place % 3 else "river") for place in range(13)]
    found = evaluate_predictions(task, "dev", examples, answers)
    assert found["exact"] == 8 / 13 and found.scores["exact"].low < 8 / 13 < found.scores["exact"].high
    assert [report.id for report in found.worst] == ["n0", "n3", "n6", "n9", "n12"]
    assert found.worst[0].text == "where <b> | by the mill"
    assert (found.worst[0].gold, found.worst[0].answer) == ("mill", "text: river")
    assert (found.classes, found.calibration) == (None, None)


def test_ten_thousand_examples_take_under_4_seconds() -> None:
    draw = random.Random(13)
    examples = [replace(each, first="a b c") for each in make_examples(*draw.choices(CLASSES.labels, k=10_000))]
    answers = [predict(draw.choice(CLASSES.labels), 0.7) for _ in examples]
    assert processor_seconds(lambda: evaluate_predictions(CLASSES, "dev", examples, answers)) < 4
