"""What a report says of one answered example: its input, both answers, and how wrong the given one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

_NOT_SHOWN = {"id", "label"}


@dataclass(frozen=True, kw_only=True)
class ExampleReport:
    """``size`` of the mistake: 0 is right; else the probability of a wrong class, the distance of a number, 1 - score.

    ``cut`` counts tokens that the model was not shown. ``confidence`` is None where the answer has no probability.
    """

    id: str
    text: str
    gold: str
    answer: str
    size: float
    confidence: float | None = None
    num_truncated: int = 0

    @property
    def words(self) -> int:
        """The length of the input."""
        return len(self.text.split())


def mark_answer(
    example: Any, prediction: Any, described: Mapping[str, Any], score: Callable[[], float]
) -> ExampleReport:
    """The mark of an answer of any shape; ``described`` is its record in a file of predictions, ``score`` its own."""
    probabilities = getattr(prediction, "scores", None)
    answer = getattr(prediction, "label", None)
    probability = probabilities.get(answer) if isinstance(probabilities, Mapping) else None
    confidence = None if probability is None else float(probability)
    return ExampleReport(
        id=str(example.id),
        text=" | ".join(
            spell_value(getattr(example, each.name)) for each in fields(example) if _is_shown(example, each)
        ),
        gold=spell_value(example.label),
        answer=_spell_record(described) if answer is None else spell_value(answer),
        size=_size(example.label, answer, confidence, score),
        confidence=confidence,
        num_truncated=int(described.get("num_truncated", 0)),
    )


def spell_value(value: Any) -> str:
    """A text, a number, or several of them."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return " ".join(map(spell_value, value))
    return str(value)


def _is_shown(example: Any, field: Any) -> bool:
    value = getattr(example, field.name)
    texts = value if isinstance(value, list | tuple) else [value]
    return field.name not in _NOT_SHOWN and bool(texts) and all(isinstance(text, str) for text in texts)


def _spell_record(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {spell_value(value)}" for name, value in described.items() if name != "id")


def _size(gold: Any, answer: Any, confidence: float | None, score: Callable[[], float]) -> float:
    if answer is not None and answer == gold:
        return 0.0
    if isinstance(gold, int | float) and isinstance(answer, int | float):
        return abs(answer - gold)
    return max(0.0, 1 - score()) if confidence is None else confidence
