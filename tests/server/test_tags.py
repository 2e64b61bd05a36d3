"""Entities in Hugging Face's form."""

from __future__ import annotations

from bertkit.server.tags import list_entities
from bertkit.task_types import NamedEntity, TagExample, TagPrediction

EXAMPLE = TagExample("1", ("Ann", "ran", "home"), source="Ann  ran home")
PREDICTION = TagPrediction(
    ("B-PER", "O", "B-LOC"),
    (0.9, 0.8, 0.7),
    (NamedEntity("PER", "Ann", 0, 3, 0.9), NamedEntity("LOC", "home", 9, 13, 0.7)),
)


def test_groups_are_entities() -> None:
    found = list_entities(EXAMPLE, PREDICTION, "simple", None)
    assert found[0] == {"entity_group": "PER", "score": 0.9, "word": "Ann", "start": 0, "end": 3}
    assert [each["entity_group"] for each in list_entities(EXAMPLE, PREDICTION, "max", ["PER"])] == ["LOC"]


def test_without_groups_each_word_has_its_tag() -> None:
    found = list_entities(EXAMPLE, PREDICTION, "none", None)
    assert [(each["entity"], each["index"], each["start"]) for each in found] == [("B-PER", 1, 0), ("B-LOC", 3, 9)]
    assert len(list_entities(EXAMPLE, PREDICTION, "none", [])) == 3
