"""Entities by the rules of conlleval, on cases worked out by hand, and the schemes against each other."""

from __future__ import annotations

import random

import pytest

from bertkit.metrics.classification import ClassScore
from bertkit.metrics.entities import SCHEMES, convert, find_entities, score_entities, spell_entities


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("I-A I-A O I-A B-A", [("A", 0, 2), ("A", 3, 4), ("A", 4, 5)]),
        ("B-A I-A B-A I-B", [("A", 0, 2), ("A", 2, 3), ("B", 3, 4)]),
        ("B-A E-A S-A O S-B", [("A", 0, 2), ("A", 2, 3), ("B", 4, 5)]),
        ("B-A I-A L-A U-A", [("A", 0, 3), ("A", 3, 4)]),
        ("E-A E-A I-B", [("A", 0, 1), ("A", 1, 2), ("B", 2, 3)]),
        ("I-B O I-A I-B", [("B", 0, 1), ("A", 2, 3), ("B", 3, 4)]),
        ("B I O I B B", [("", 0, 2), ("", 3, 4), ("", 4, 5), ("", 5, 6)]),
        ("B E S O U B L", [("", 0, 2), ("", 2, 3), ("", 4, 5), ("", 5, 7)]),
        ("B I-A I", [("", 0, 1), ("A", 1, 2), ("", 2, 3)]),
        ("LOC LOC O PER", [("LOC", 0, 2), ("PER", 3, 4)]),
    ],
)
def test_entities_of_well_formed_and_ill_formed_tags(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert find_entities(tags.split()) == expected


def test_all_schemes_encode_the_same_entities() -> None:
    generator = random.Random(7)
    for _ in range(99):
        tags = generator.choices(["O", "B-A", "I-A", "B-B", "I-B"], k=13)
        entities = find_entities(tags)
        for scheme in SCHEMES:
            assert find_entities(spell_entities(entities, 13, scheme)) == entities
            assert convert(convert(tags, scheme), "iob2") == convert(tags, "iob2")


def test_tags_of_each_scheme() -> None:
    entities = find_entities(["B-A", "I-A", "I-A", "B-A", "O", "B-B"])
    assert [" ".join(spell_entities(entities, 6, scheme)) for scheme in SCHEMES] == [
        "I-A I-A I-A B-A O I-B",
        "B-A I-A I-A B-A O B-B",
        "B-A I-A E-A S-A O S-B",
        "B-A I-A L-A U-A O U-B",
    ]


def test_bare_tags_stay_bare_and_their_entities_have_a_row_of_their_own() -> None:
    assert convert(["I", "I", "O", "B", "B"], "bioes") == ["B", "E", "O", "S", "S"]
    assert convert(["S", "O", "U"], "iob2") == ["B", "O", "B"]
    (row,) = score_entities([["B", "I", "O", "B"]], [["B", "I", "O", "O"]])[1]
    assert (row.name, row.precision, row.recall, row.support) == ("entity", 1, 0.5, 2)


def test_an_entity_is_correct_only_with_all_its_words() -> None:
    gold = [["B-A", "I-A", "O", "B-B"], ["B-A", "O", "B-B"]]
    predicted = [["B-A", "O", "O", "B-B"], ["B-A", "B-A", "B-A"]]
    overall, types = score_entities(gold, predicted)
    assert (overall.precision, overall.recall, overall.f1) == pytest.approx((2 / 5, 2 / 4, 4 / 9))
    assert [(each.name, each.support) for each in types] == [("A", 2), ("B", 2)]
    assert [(each.precision, each.recall, each.f1) for each in types] == [
        pytest.approx((1 / 4, 1 / 2, 1 / 3)),
        pytest.approx((1, 1 / 2, 2 / 3)),
    ]
    assert score_entities([["O"]], [["O"]]) == (ClassScore("all", 0, 0, 0, 0), [])
