"""Entities in sequences of tags, and how many were found: the rules of CoNLL's ``conlleval``.

A tag is ``O`` or a letter and a type, ``B-PER``. The schemes are IOB1, IOB2, BIOES and BILOU; one reading serves them
all, and ill-formed sequences are read as ``conlleval`` reads them. A tag without a letter, as some models give them, is
read as ``I-``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from bertkit.metrics.classification import ClassScore

Scheme = Literal["iob1", "iob2", "bioes", "bilou"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

_OUTSIDE = "O"
_LETTERS_OF_BILOU = {"L": "E", "U": "S"}


class Entity(NamedTuple):
    """Words ``start`` to ``end`` (the one behind the last) and what they name."""

    type: str
    start: int
    end: int


class Scores(NamedTuple):
    """Shares of 1; 0 where undefined."""

    precision: float
    recall: float
    f1: float


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence, by ``conlleval``'s ``startOfChunk`` and ``endOfChunk``."""
    found = []
    start = 0
    before, type_before = _OUTSIDE, ""
    for place, tag in enumerate([*tags, _OUTSIDE]):
        letter, type = _split(tag)
        changed = type != type_before
        if before != _OUTSIDE and (changed or letter in "BSO" or before in "ES"):
            found.append(Entity(type_before, start, place))
        if letter != _OUTSIDE and (changed or letter in "BS" or before in "ESO"):
            start = place
        before, type_before = letter, type
    return found


def _split(tag: str) -> tuple[str, str]:
    letter, dash, type = tag.partition("-")
    if not dash and tag != _OUTSIDE:
        return "I", tag
    return _LETTERS_OF_BILOU.get(letter, letter), type


def spell_entities(entities: Iterable[Entity], length: int, scheme: Scheme = "iob2") -> list[str]:
    """The tags of a sentence of ``length`` words with these entities, which do not overlap."""
    tags = [_OUTSIDE] * length
    end_before, type_before = 0, ""
    for type, start, end in sorted(entities, key=lambda entity: entity.start):
        letters = ["I"] * (end - start)
        if scheme != "iob1" or (start == end_before and type == type_before):
            letters[0] = "B"
        if scheme in ("bioes", "bilou"):
            last, single = "ES" if scheme == "bioes" else "LU"
            letters[-1] = last if end - start > 1 else single
        tags[start:end] = [f"{letter}-{type}" for letter in letters]
        end_before, type_before = end, type
    return tags


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The same entities in another scheme."""
    return spell_entities(find_entities(tags), len(tags), scheme)


def score_entities(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> tuple[Scores, list[ClassScore]]:
    """Of all entities, and of each type in the order of the alphabet: right is one with the same type and words."""
    sought, told, right = Counter[str](), Counter[str](), Counter[str]()
    for tags, answers in zip(gold, predicted, strict=True):
        wanted, given = find_entities(tags), find_entities(answers)
        sought.update(entity.type for entity in wanted)
        told.update(entity.type for entity in given)
        right.update(entity.type for entity in set(wanted) & set(given))
    types = sorted(sought | told)
    overall = _score(right.total(), told.total(), sought.total())
    each = {type: _score(right[type], told[type], sought[type]) for type in types}
    return overall, [ClassScore(type, *each[type], support=sought[type]) for type in types]


def _score(right: int, told: int, sought: int) -> Scores:
    return Scores(
        right / told if told else 0.0,
        right / sought if sought else 0.0,
        2 * right / (told + sought) if right else 0.0,
    )
