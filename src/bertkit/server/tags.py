"""Entities and tags of words in the form of Hugging Face's pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from bertkit.task_types import TagExample, TagPrediction

_OUTSIDE = "O"


def list_entities(
    example: TagExample, prediction: TagPrediction, strategy: str, ignored: Sequence[str] | None
) -> list[dict[str, object]]:
    """Entities with their characters in the text; with the strategy ``none`` each word with its tag.

    ``ignored`` are tags or types that are left out, by default "O". Words have one tag each here, that of their first
    token, so all other strategies give the same.
    """
    left_out = {_OUTSIDE} if ignored is None else set(ignored)
    if strategy != "none":
        return [
            {"entity_group": each.type, "score": each.score, "word": each.text, "start": each.start, "end": each.end}
            for each in prediction.entities
            if each.type not in left_out
        ]
    words = zip(example.words, example.places, prediction.label, prediction.probabilities, strict=True)
    return [
        {"entity": tag, "score": score, "index": number, "word": word, "start": start, "end": end}
        for number, (word, (start, end), tag, score) in enumerate(words, start=1)
        if tag not in left_out
    ]
