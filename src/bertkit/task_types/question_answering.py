"""Extractive question answering: the answer to a question is a span of its context, or there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from bertkit.batch import Feature
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.errors import data_error, usage_error
from bertkit.metrics.squad import Rules, score_all, score_all_v2
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.ranges import FiniteFloat, Length, TaskLength
from bertkit.task_files.squad_files import SpanExample
from bertkit.task_types.base import AnswerColumns, AnswerRecord, BaselineMethod, FileTask
from bertkit.task_types.baselines import MOST_FREQUENT, most_frequent
from bertkit.task_types.question_reader import QuestionReader
from bertkit.task_types.span_baselines import OVERLAP, predict_by_overlap
from bertkit.task_types.span_decoder import SpanPrediction, find_spans, gain_of_answering
from bertkit.task_types.span_encoder import SpanEncoder
from bertkit.task_types.thresholds import best_gain_threshold

_THRESHOLD_EXAMPLES = 2000
"""Training examples that the threshold of the baseline is chosen on."""


@dataclass(frozen=True, kw_only=True)
class QuestionAnsweringTask(FileTask[SpanExample, SpanPrediction]):
    """A span of the context or, with ``null``, no answer where ``null_odds`` are above ``threshold``.

    The threshold is chosen on dev: ``null_score_diff_threshold`` of google-research/bert, -tau of the paper (section
    4.3). A long context is read in windows that begin every ``stride`` tokens. Answers have at most ``longest`` tokens,
    questions ``max_query``, or half of ``max_length`` where that is less; a prediction keeps the ``n_best`` spans.
    With ``question_head`` the head is shown where the words of the question occur: without it small models learn little
    from thousands of questions. Without ``null`` the questions without an answer in a file of SQuAD 2.0 are left out.
    ``rules`` are those of the official program that scores.
    """

    pipeline_tag = "question-answering"
    pipeline_method = "answer"
    score_names = ("f1", "exact_match", "exact")
    spells_answers = True
    truncated = "question"
    head_fields = ("question_head",)
    row_fields = ("max_length", "stride", "max_query")

    metric: str = "f1"
    max_length: TaskLength = 384
    null: bool = False
    threshold: FiniteFloat = 0.0
    stride: Length = 128
    max_query: Length = 64
    n_best: Length = 20
    longest: Length = 30
    question_head: bool = False
    rules: Rules = "v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        exact = "exact" if self.rules == "v2" else "exact_match"  # as the two official programs name it
        if self.metric in {"exact", "exact_match"} - {exact}:
            raise usage_error(f"metric is {self.metric}; the scores of {self.name} are f1, {exact}.")

    @property
    def answer_columns(self) -> AnswerColumns:
        """The answer and its place; the official program of SQuAD 2.0 reads ``null_odds`` from a file."""
        return AnswerColumns(
            columns=("id", "answer", "start", "end", "probability"),
            further=("null_odds", "n_best", "num_truncated"),
            files=("null_odds",) if self.null else (),
            answer="answer",
        )

    @property
    def reader(self) -> QuestionReader:
        """What reads the files of the task, and new questions."""
        return QuestionReader(name=self.name, files=self.files, heldout=self.heldout, null=self.null)

    @property
    def encoder(self) -> SpanEncoder:
        """What makes windows of a question and its context."""
        return SpanEncoder(max_length=self.max_length, stride=self.stride, max_query=self.max_query)

    def encode(self, example: SpanExample, tokenizer: Tokenizer) -> list[Feature]:
        """``[CLS] question [SEP] part of the context [SEP]``, one window after the other."""
        return self.encoder.encode(example, tokenizer)

    def encode_all(
        self, examples: Iterable[SpanExample], tokenizer: Tokenizer
    ) -> Iterator[tuple[SpanExample, list[Feature]]]:
        """``encode`` for many examples; a context is tokenized once for consecutive questions about it."""
        return self.encoder.encode_all(examples, tokenizer)

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """An untrained head that scores starts and ends."""
        return {"span": SpanExtraction(encoder.hidden_size, question_head=self.question_head)}

    def decode(
        self, example: SpanExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]
    ) -> SpanPrediction:
        """The span with the highest sum of scores, or no answer."""
        owned = self.encoder.owned(features)
        return self.decide(
            find_spans(example, features, outputs, owned, null=self.null, n_best=self.n_best, longest=self.longest)
        )

    def decide(self, prediction: SpanPrediction) -> SpanPrediction:
        """The same spans, with the best as the answer or with no answer."""
        none = not prediction.n_best or (self.null and prediction.null_odds > self.threshold)
        return replace(prediction, text="" if none else prediction.n_best[0].text)

    def calibrate(
        self, examples: Sequence[SpanExample], predictions: Sequence[SpanPrediction]
    ) -> tuple[Self, Sequence[SpanPrediction]]:
        """With ``null``, the threshold with the highest F1 on ``examples`` that could be answered at all."""
        if not self.null:
            return self, predictions
        pairs = [pair for pair in zip(examples, predictions, strict=True) if pair[1].n_best]
        if not pairs:
            return self, predictions
        odds = np.array([prediction.null_odds for _, prediction in pairs])
        gains = np.array([gain_of_answering(*pair) for pair in pairs])
        task = replace(self, threshold=best_gain_threshold(odds, gains))
        return task, [task.decide(prediction) for prediction in predictions]

    def reconsider(self, prediction: SpanPrediction) -> SpanPrediction:
        """Without ``null`` the best span; with ``null`` the decision of the task that made the prediction is kept."""
        return prediction if self.null else self.decide(prediction)

    def baselines(self) -> Mapping[str, BaselineMethod[SpanExample, SpanPrediction]]:
        """A span near the words of the question; with ``null`` also the most frequent answer, which is often none."""
        if not self.null:
            return {OVERLAP: predict_by_overlap}
        return {MOST_FREQUENT: _predict_most_frequent, OVERLAP: partial(_predict_by_overlap_or_none, self)}

    def describe(self, example: SpanExample, prediction: SpanPrediction) -> AnswerRecord:
        """``id``, ``answer`` with its ``start`` and ``end``, ``probability``, ``null_odds``, and the ``n_best``."""
        record: AnswerRecord = {"id": example.id, "answer": prediction.text}
        if (span := prediction.span) is not None:
            record |= {"start": span.start, "end": span.end, "probability": round(span.probability, 6)}
        if self.null:
            record["null_odds"] = round(prediction.null_odds, 6)
        record["n_best"] = [{**each._asdict(), "probability": round(each.probability, 6)} for each in prediction.n_best]
        return record | ({"num_truncated": prediction.num_truncated} if prediction.num_truncated else {})

    def score(self, examples: Iterable[SpanExample], predictions: Iterable[SpanPrediction]) -> dict[str, float]:
        """The official scores, from 0 to 1; with ``null`` also those of questions with and without an answer."""
        gold: dict[str, tuple[str, ...]] = {}
        predicted: dict[str, str] = {}
        for number, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            if example.answers is None:
                raise data_error(f"question {example.id} has no gold answer; it cannot be scored.")
            gold[str(number)], predicted[str(number)] = example.texts, prediction.text
        if self.rules != "v2":
            return {name: value / 100 for name, value in score_all(gold, predicted, self.rules).items()}
        scores = score_all_v2(gold, predicted)
        return {name: value / 100 for name, value in scores.items() if not name.endswith("total")}

    def advise_on_truncation(self, positions: int | None) -> str:
        """Only questions are cut; contexts are read in windows."""
        longest = self.encoder.longest_question
        if longest < self.max_query:
            if positions is not None and 4 * longest > positions:
                return ""
            return f"Questions are cut to {longest} tokens, half of max_length: --set task.max_length={4 * longest}"
        return f"Questions are cut to {longest} tokens: --set task.max_query={2 * longest}"


def _predict_by_overlap_or_none(
    task: QuestionAnsweringTask, train: Sequence[SpanExample], dev: Sequence[SpanExample]
) -> Sequence[SpanPrediction]:
    """The span, or no answer by the threshold that is best on some examples of train."""
    known = train[:_THRESHOLD_EXAMPLES]
    task, _ = task.calibrate(known, predict_by_overlap(train, known))
    return [task.decide(prediction) for prediction in predict_by_overlap(train, dev)]


def _predict_most_frequent(train: Sequence[SpanExample], dev: Sequence[SpanExample]) -> list[SpanPrediction]:
    return [SpanPrediction(most_frequent([example.label or "" for example in train]))] * len(dev)
