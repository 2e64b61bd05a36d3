"""Which examples are held out as dev where there is no dev file, and what train and dev have in common.

The choice depends only on the hash of the text. It is the same on every machine and in every order of the rows, and two
rows with the same text are never split.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from bertkit.contracts import Example
from bertkit.errors import count_of, list_names, verb_of

_MOST_SHARES = 2
"""How many times the share of dev may be held out, so that dev has an example of every class."""

_MOST_SHOWN = 60
"""Characters of a text in a message."""


@runtime_checkable
class Labelled(Example, Protocol):
    """An example with one text or two, and a gold answer."""

    @property
    def first(self) -> str:
        """The text."""
        ...

    @property
    def second(self) -> str | None:
        """The second text of a pair."""
        ...


L = TypeVar("L", bound=Labelled)


def text_key(example: Labelled) -> str:
    """The hash of an example's text, in which case and spacing are ignored."""
    return hash_texts(example.first, example.second or "")


def _exact_key(example: Labelled) -> str:
    """The same, but case matters: c1ccccc1 is benzene, and C1CCCCC1 is not."""
    return hash_texts(example.first, example.second or "", fold=False)


def hash_texts(*texts: str, fold: bool = True) -> str:
    """The hash of several texts, in which spacing is ignored, and with ``fold`` case."""
    plain = "\0".join(" ".join((text.casefold() if fold else text).split()) for text in texts)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def hold_out(
    examples: Sequence[L], share: float, *, key: Callable[[L], str] = text_key, by_class: bool = True
) -> tuple[list[L], list[L]]:
    """(kept, held out): about ``share`` of the rows of every class, in the order of the hashes of their texts.

    Each class with two different texts or more gives at least one, until twice the share is held out: otherwise a
    hundred classes of three rows would lose a third of train. Numeric labels count as one class, and without
    ``by_class`` so do all examples. A text with several labels, in one row or in several, belongs to the class whose
    name is the first in the alphabet. Examples with the same ``key`` stay together.
    """
    keys = [key(example) for example in examples]
    sizes = Counter(keys)
    class_of: dict[str, str] = {}
    for name, example in zip(keys, examples, strict=True):
        found = _class_of(example.label) if by_class else ""
        class_of[name] = min(class_of.get(name, found), found)
    classes: dict[str, list[str]] = {}
    for name, found in class_of.items():
        classes.setdefault(found, []).append(name)
    chosen = {name for members in classes.values() for name in _choose(sorted(members), sizes, share)}
    most = math.ceil(_MOST_SHARES * share * len(examples))
    num_held = sum(sizes[name] for name in chosen)
    for name in _smallest_of_other_classes(classes.values(), chosen, sizes):
        if not chosen or num_held + sizes[name] <= most:
            chosen.add(name)
            num_held += sizes[name]
    kept = [example for name, example in zip(keys, examples, strict=True) if name not in chosen]
    held = [example for name, example in zip(keys, examples, strict=True) if name in chosen]
    return kept, held


def hold_out_rows(examples: Sequence[L], share: float) -> tuple[list[L], list[L]]:
    """The same for the rows of a table: those with one first text stay together, such as the pairs of a premise.

    Where that would hold out nothing, or more than twice the share, only rows that are equal stay together.
    """
    kept, held = hold_out(examples, share, key=_first_key)
    if 0 < len(held) <= math.ceil(_MOST_SHARES * share * len(examples)):
        return kept, held
    return hold_out(examples, share)


def _first_key(example: Labelled) -> str:
    return hash_texts(example.first, "")


def _class_of(label: object) -> str:
    first = min(label, default="") if isinstance(label, tuple) else label
    return first if isinstance(first, str) else ""


def _choose(keys: Sequence[str], sizes: Mapping[str, int], share: float) -> list[str]:
    """Texts whose rows add up to at most ``share`` of all rows."""
    remaining = round(share * sum(sizes[key] for key in keys))
    chosen = []
    for key in keys:
        if sizes[key] <= remaining:
            chosen.append(key)
            remaining -= sizes[key]
    return chosen


def _smallest_of_other_classes(
    classes: Iterable[Sequence[str]], chosen: Container[str], sizes: Mapping[str, int]
) -> list[str]:
    """The text with the fewest rows of each class of several texts of which none is chosen; the fewest rows first."""

    def size(key: str) -> tuple[int, str]:
        return sizes[key], key

    others = [keys for keys in classes if len(keys) > 1 and not any(key in chosen for key in keys)]
    return sorted((min(keys, key=size) for keys in others), key=size)


def describe_held_rows(kept: Sequence[Labelled], held: Sequence[Labelled]) -> str:
    """How many rows of the training file are held out, and how they were chosen."""
    has_classes = any(isinstance(example.label, str | tuple) for example in (*kept, *held))
    share = ", class by class" if has_classes else ""
    together = "equal texts"
    if any(example.second is not None for example in held):
        apart = {_first_key(example) for example in kept}.isdisjoint(map(_first_key, held))
        together = "rows with the same first text" if apart else "equal rows"
    return describe_held_out(kept, held, noun="examples", share=share, together=together)


def describe_held_out(
    kept: Sequence[Example], held: Sequence[Example], *, noun: str, together: str, share: str = "", key: str = "text"
) -> str:
    """How many are held out, what has the hash that chose them, and which of them stay ``together``."""
    total = len(kept) + len(held)
    if not held:
        return f"no dev file: none of {total:,} {noun} can be held out as dev"
    chosen = f"{len(held) / total:.0%}{share}, chosen by the hash of the {key}"
    figures = f"{len(held):,} of {total:,} {noun} are held out as dev ({chosen}"
    return f"no dev file: {figures}; {together} stay together)"


def describe_unlabelled(split: str, count: int) -> list[str]:
    """A sentence if some rows of a split have no label."""
    left_out = f"{verb_of(count, 'has', 'have')} no label and {verb_of(count, 'is', 'are')} left out"
    return [f"{count_of(count, 'row')} of {split} {left_out}"] if count else []


class IdCount:
    """Counts ids of new input, and finds those that occur more than once, with 8 bytes for each."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, id: str) -> None:
        """Count one."""
        self._hashes.append(hash(id))

    def describe(self, name: str, ids: Iterable[str]) -> list[str]:
        """A sentence if an id occurs more than once in the file ``name``; ``ids`` reads it again."""
        hashes, counts = np.unique(np.frombuffer(self._hashes, np.int64), return_counts=True)
        repeated = set(hashes[counts > 1].tolist())
        return _describe_repeated(name, (id for id in ids if hash(id) in repeated), len(repeated)) if repeated else []


def describe_repeated_ids(split: str, rows: Iterable[tuple[str, object]]) -> list[str]:
    """A sentence if an id occurs more than once among the (id, label) of a split."""
    labels: dict[str, list[object]] = {}
    for id, label in rows:
        labels.setdefault(id, []).append(label)
    repeated = {id: found for id, found in labels.items() if len(found) > 1}
    if not repeated:
        return []
    differing = sum(len(set(found) - {None}) > 1 for found in repeated.values())
    contradicting = f", {differing:,} of them with different labels" if differing else ""
    return _describe_repeated(split, iter(repeated), len(repeated), contradicting)


def _describe_repeated(name: str, repeated: Iterator[str], count: int, contradicting: str = "") -> list[str]:
    occur = f"{count_of(count, 'id')} of {name} {verb_of(count, 'occurs', 'occur')}"
    return [f'{occur} more than once (the first is "{next(repeated)}"){contradicting}; every row counts']


def describe_shared_texts(train: Container[str], examples: Sequence[Labelled], split: str) -> list[str]:
    """A sentence if some ``examples`` of a split have a text that is also in train, of which it has the keys."""
    shared = sum(text_key(example) in train for example in examples)
    of_all = f"{shared:,} of {len(examples):,} {split} examples"
    return [f"{of_all} have a text that is also in train, so the scores are too high"] if shared else []


def describe_overlap(train: Sequence[Labelled], dev: Sequence[Labelled]) -> list[str]:
    """Sentences about texts that dev shares with train, and texts of train with different labels or in several rows."""
    keys = list(map(text_key, train))
    counts = Counter(keys)
    notes = describe_shared_texts(counts, dev, "dev")
    # Only a text that occurs again can contradict or repeat another: few need a second hash.
    again = [(_exact_key(example), example) for key, example in zip(keys, train, strict=True) if counts[key] > 1]
    labels: dict[str, set[object]] = {}
    for key, example in again:
        labels.setdefault(key, set()).add(example.label)
    contradictions = {key for key, each in labels.items() if len(each) > 1}
    if contradictions:
        first = next(example.first for key, example in again if key in contradictions)
        occur = f"{verb_of(len(contradictions), 'occurs', 'occur')} with different labels"
        shown = shorten(first, _MOST_SHOWN, placeholder="...")
        notes.append(f'{count_of(len(contradictions), "text")} of train {occur} (the first is "{shown}")')
    rows = [(key, example.label) for key, example in again if isinstance(example.label, str)]
    if repeated := len(rows) - len(set(rows)):
        repeat = verb_of(repeated, "repeats", "repeat")
        notes.append(f"{count_of(repeated, 'row')} of train {repeat} the text and the label of another")
    return notes


def describe_missing_classes(train: Sequence[Example], dev: Sequence[Example]) -> list[str]:
    """A sentence about the classes of train that dev lacks."""
    of_dev = {example.label for example in dev}
    labels = dict.fromkeys(example.label for example in train)
    missing = [label for label in labels if isinstance(label, str) and label not in of_dev] if dev else []
    if not missing:
        return []
    measured = f"how well {verb_of(len(missing), 'it is', 'they are')} recognised is not measured"
    return [f"dev has no example of {list_names(missing)}: {measured}"]


class HoldOut(NamedTuple):
    """What serves as dev where there is no dev file.

    ``noun`` names what is held out, of which there must be two. ``split`` takes all examples and a share, and gives
    those that are kept and those that are held out; ``describe`` says how many these are and how they were chosen.
    ``compare`` says what should be known about train and dev together, whether dev is held out or not.
    """

    noun: str
    split: Callable[[Sequence[Any], float], tuple[list[Any], list[Any]]]
    describe: Callable[[Sequence[Any], Sequence[Any]], str]
    compare: Callable[[Sequence[Any], Sequence[Any]], list[str]]


def _compare_rows(train: Sequence[Labelled], dev: Sequence[Labelled]) -> list[str]:
    return [*describe_overlap(train, dev), *describe_missing_classes(train, dev)]


ROWS = HoldOut("texts of one class", hold_out_rows, describe_held_rows, _compare_rows)
"""A share of the rows of every class, chosen by the hash of their texts."""
