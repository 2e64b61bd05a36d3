"""From the outputs for the windows of a context to an answer, or to no answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Feature
from bertkit.contracts import OutputArrays
from bertkit.metrics.squad import score_answer
from bertkit.results import Result
from bertkit.task_files.squad_files import SpanExample
from bertkit.task_types.probabilities import softmax
from bertkit.task_types.windows import Candidate, find_candidates


class AnswerSpan(NamedTuple):
    """Characters ``start`` to ``end`` of the context, and their probability among the best answers."""

    text: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True, repr=False)
class SpanPrediction(Result):
    """``text`` is the answer, "" for none; ``n_best`` are the spans that it was chosen from, the best first.

    ``null_odds`` is the score of "no answer" minus that of the best span. ``num_truncated`` counts the tokens that were
    cut off the question.
    """

    text: str
    n_best: tuple[AnswerSpan, ...] = ()
    null_odds: float = 0.0
    num_truncated: int = 0

    @property
    def label(self) -> str:
        """``text``."""
        return self.text

    @property
    def span(self) -> AnswerSpan | None:
        """The answer with its place and probability; None for no answer."""
        return self.n_best[0] if self.text and self.n_best else None

    @property
    def start(self) -> int | None:
        """The first character of the answer in the context."""
        return self.span.start if self.span else None

    @property
    def end(self) -> int | None:
        """The character after the answer."""
        return self.span.end if self.span else None

    @property
    def score(self) -> float:
        """The probability of the answer, or of no answer, among the best answers."""
        return self.span.probability if self.span else 1.0 - sum(each.probability for each in self.n_best)

    def to_dict(self) -> dict[str, Any]:
        """The answer with its place and score, and the other fields, as plain values."""
        answer = {"text": self.text, "start": self.start, "end": self.end, "score": self.score}
        return {**answer, **Result.to_dict(self), "n_best": [each._asdict() for each in self.n_best]}


def find_spans(
    example: SpanExample,
    features: Sequence[Feature],
    outputs: Sequence[OutputArrays],
    owned: Sequence[NDArray[np.bool_]],
    *,
    null: bool,
    n_best: int,
    longest: int,
) -> SpanPrediction:
    """The ``n_best`` spans of at most ``longest`` tokens with the highest sums of scores; none is the answer yet.

    Their texts are those of the context, character by character. "No answer" has the lowest score that any window gives
    to [CLS]; with ``null`` it shares the probability.
    """
    candidates = find_candidates(features, outputs, owned, n_best=n_best, longest=longest)
    null_score = min(float(output["start"][0]) + float(output["end"][0]) for output in outputs)
    best = _distinct(example, features, candidates, n_best)
    scores = np.array([score for score, _, _ in best] + ([null_score] if null else []))
    shares = softmax(scores) if len(scores) else scores
    spans = tuple(
        AnswerSpan(example.context[start:end], start, end, float(share))
        for (_, start, end), share in zip(best, shares, strict=False)
    )
    odds = null_score - best[0][0] if best else float(np.finfo(np.float32).max)
    return SpanPrediction("", spans, odds, sum(feature.num_truncated for feature in features))


def gain_of_answering(example: SpanExample, prediction: SpanPrediction) -> float:
    """The F1 of the best span minus the F1 of no answer."""
    if not prediction.n_best:
        return 0.0
    answered, unanswered = (score_answer(text, example.texts, "v2").f1 for text in (prediction.n_best[0].text, ""))
    return answered - unanswered


def _distinct(
    example: SpanExample, features: Sequence[Feature], candidates: Iterable[Candidate], count: int
) -> list[tuple[float, int, int]]:
    """(score, first and last character) of the best ``count`` candidates with different texts."""
    found: dict[str, tuple[float, int, int]] = {}
    for candidate in candidates:
        if len(found) == count:
            break
        offsets = features[candidate.window].offsets
        assert offsets is not None
        start, end = int(offsets[candidate.start, 0]), int(offsets[candidate.end, 1])
        if example.context[start:end]:
            found.setdefault(example.context[start:end], (candidate.score, start, end))
    return list(found.values())
