"""Entities in sequences of tags and their precision, recall and F1, by the rules of CoNLL's ``conlleval``.

A tag is ``O``, or a letter and a type such as ``B-PER``. The schemes are IOB1, IOB2, BIOES and BILOU; one parser reads
all of them, and reads ill-formed sequences as ``conlleval`` does. A bare letter such as ``B`` is a tag with an empty
type. Any other tag without a letter, such as ``PER``, which some models predict, is read as ``I-PER``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from bertkit.metrics.classification import ClassScore

Scheme = Literal["iob1", "iob2", "bioes", "bilou"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

OUTSIDE = "O"
"""The tag of a word outside every entity."""

NO_TYPE = "entity"
"""The name, in scores, of the entities of bare tags."""

_BARE_TAGS = frozenset("BIESLUO")
_LETTERS_OF_BILOU = {"L": "E", "U": "S"}


class Entity(NamedTuple):
    """The type of a named entity (empty for bare tags) and its words, from ``start`` up to but without ``end``."""

    type: str
    start: int
    end: int


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence, by ``conlleval``'s ``startOfChunk`` and ``endOfChunk``."""
    found = []
    start = 0
    previous, previous_type = OUTSIDE, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, type = _split(tag)
        changed = type != previous_type
        if previous != OUTSIDE and (changed or letter in "BSO" or previous in "ES"):
            found.append(Entity(previous_type, start, place))
        if letter != OUTSIDE and (changed or letter in "BS" or previous in "ESO"):
            start = place
        previous, previous_type = letter, type
    return found


def _split(tag: str) -> tuple[str, str]:
    letter, dash, type = tag.partition("-")
    if not dash and tag not in _BARE_TAGS:
        return "I", tag
    return _LETTERS_OF_BILOU.get(letter, letter), type


def spell_entities(entities: Iterable[Entity], length: int, scheme: Scheme = "iob2") -> list[str]:
    """The tags of a sentence of ``length`` words with these entities, which must not overlap."""
    tags = [OUTSIDE] * length
    previous_end, previous_type = 0, ""
    for type, start, end in sorted(entities, key=lambda entity: entity.start):
        letters = ["I"] * (end - start)
        if scheme != "iob1" or (start == previous_end and type == previous_type):
            letters[0] = "B"
        if scheme in ("bioes", "bilou"):
            last, single = "ES" if scheme == "bioes" else "LU"
            letters[-1] = last if end - start > 1 else single
        tags[start:end] = [spell_tag(letter, type) for letter in letters]
        previous_end, previous_type = end, type
    return tags


def spell_tag(letter: str, type: str) -> str:
    """``B-PER``, or ``B`` for an empty type."""
    return f"{letter}-{type}" if type else letter


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The same entities in another scheme."""
    return spell_entities(find_entities(tags), len(tags), scheme)


def score_entities(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> tuple[ClassScore, list[ClassScore]]:
    """Scores of all entities, and of each type in alphabetical order; 0 where undefined.

    A predicted entity is correct if a gold entity of that sentence has the same type and the same words.
    """
    in_gold, in_predicted, correct = Counter[str](), Counter[str](), Counter[str]()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_entities, predicted_entities = find_entities(gold_tags), find_entities(predicted_tags)
        in_gold.update(entity.type for entity in gold_entities)
        in_predicted.update(entity.type for entity in predicted_entities)
        correct.update(entity.type for entity in set(gold_entities) & set(predicted_entities))
    overall = _score("all", correct.total(), in_predicted.total(), in_gold.total())
    types = sorted(in_gold | in_predicted)
    return overall, [_score(type or NO_TYPE, correct[type], in_predicted[type], in_gold[type]) for type in types]


def _score(name: str, correct: int, predicted: int, gold: int) -> ClassScore:
    return ClassScore(
        name,
        precision=correct / predicted if predicted else 0.0,
        recall=correct / gold if gold else 0.0,
        f1=2 * correct / (predicted + gold) if correct else 0.0,
        support=gold,
    )
