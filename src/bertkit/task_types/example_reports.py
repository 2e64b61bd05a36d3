"""What an evaluation shows of one example: its input, the gold answer, the prediction, and how wrong it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any

from bertkit.contracts import Example
from bertkit.scores import lack_of

_NOT_SHOWN = {"id", "label"}


@dataclass(frozen=True, kw_only=True)
class ExampleReport:
    """``error`` is 0 if right; else the probability of the wrong class, the distance of a number, or 1 - score.

    ``words`` counts those of the input. ``num_truncated`` counts tokens that the model has not read. ``confidence`` is
    None without a probability.
    """

    id: str
    text: str
    gold: str
    answer: str
    error: float
    confidence: float | None = None
    num_truncated: int = 0
    words: int


def report_prediction(
    example: Example, prediction: object, described: Mapping[str, object], metric: str, score: Callable[[], float]
) -> ExampleReport:
    """The report of a prediction of any type.

    ``described`` is its record in a file of predictions, and ``score`` computes ``metric`` for this example alone.
    """
    probabilities = getattr(prediction, "scores", None)
    answer = getattr(prediction, "label", None)
    probability = probabilities.get(answer) if isinstance(probabilities, Mapping) else None
    confidence = None if probability is None else float(probability)
    num_truncated = described.get("num_truncated", 0)
    assert isinstance(num_truncated, int)
    texts = texts_of(example)
    return ExampleReport(
        id=example.id,
        text=join_texts(texts),
        gold=spell_value(example.label),
        answer=_spell_record(described) if answer is None else spell_value(answer),
        error=_error(example.label, answer, confidence, lambda: lack_of(metric, score())),
        confidence=confidence,
        num_truncated=num_truncated,
        words=count_words(texts),
    )


def join_texts(texts: Iterable[str]) -> str:
    """The texts of an example on one line."""
    return " | ".join(texts)


def count_words(texts: Iterable[str]) -> int:
    """The words of the texts of an example, which have spaces between them."""
    return sum(len(text.split()) for text in texts)


def spell_value(value: object) -> str:
    """A text, a number, or several of them, such as tags or labels; labels may have spaces in them."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        parts = [spell_value(each) for each in value]
        return (", " if any(" " in part for part in parts) else " ").join(parts) or "none"
    return str(value)


def texts_of(example: Any) -> list[str]:
    """The fields of an example, which is a dataclass, that are texts or lists of texts and that its repr shows."""
    return [spell_value(getattr(example, each.name)) for each in fields(example) if _is_shown(example, each)]


def _is_shown(example: Example, field: Field[object]) -> bool:
    if not field.repr or field.name in _NOT_SHOWN:  # a document is as long as a file and the same for each sentence
        return False
    value = getattr(example, field.name)
    texts = value if isinstance(value, list | tuple) else [value]
    return bool(texts) and all(isinstance(text, str) for text in texts)


def _spell_record(described: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {spell_value(value)}" for name, value in described.items() if name != "id")


def _error(gold: object, answer: object, confidence: float | None, lack: Callable[[], float]) -> float:
    if answer is not None and answer == gold:
        return 0.0
    if isinstance(gold, int | float) and isinstance(answer, int | float):
        return abs(answer - gold)
    return max(0.0, lack()) if confidence is None else confidence
