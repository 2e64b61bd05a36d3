"""Which examples are kept from training for want of a dev file, and what train and dev have in common.

The choice hangs on the text alone (its hash), so it is the same on every machine and in every order of the
rows, and two rows of the same text never end up on different sides.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Labelled(Protocol):
    """What is needed of an example here."""

    @property
    def first(self) -> str:
        """The text."""
        ...

    @property
    def second(self) -> str | None:
        """The second text of a pair."""
        ...

    @property
    def label(self) -> object:
        """The gold answer."""
        ...


Example = TypeVar("Example", bound=Labelled)


def text_key(example: Labelled) -> str:
    """The hash of an example's text, blind to case and spacing."""
    texts = [" ".join(text.casefold().split()) for text in (example.first, example.second or "")]
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def hold_out(examples: Sequence[Example], share: float) -> tuple[list[Example], list[Example]]:
    """(kept, held out): of every class about ``share`` of its rows, texts in the order of their hashes.

    A class with two different texts or more gives one at least; numbers are one class. A text with several labels,
    in one row or in several, goes with the first of them.
    """
    keys = [text_key(example) for example in examples]
    sizes = Counter(keys)
    first = dict(zip(reversed(keys), reversed(examples), strict=True))
    classes: dict[str, list[str]] = {}
    for key, example in first.items():
        classes.setdefault(_class_of(example.label), []).append(key)
    chosen = {key for members in classes.values() for key in _choose(sorted(members), sizes, share)}
    kept = [example for key, example in zip(keys, examples, strict=True) if key not in chosen]
    held = [example for key, example in zip(keys, examples, strict=True) if key in chosen]
    return kept, held


def _class_of(label: object) -> str:
    first = next(iter(label), "") if isinstance(label, tuple) else label
    return first if isinstance(first, str) else ""


def _choose(keys: Sequence[str], sizes: Mapping[str, int], share: float) -> list[str]:
    """Texts whose rows add up to ``share`` of all rows and no more, or the one with the fewest."""
    room = round(share * sum(sizes[key] for key in keys))
    chosen = []
    for key in keys:
        if sizes[key] <= room:
            chosen.append(key)
            room -= sizes[key]
    if not chosen and len(keys) > 1:
        return [min(keys, key=lambda key: sizes[key])]
    return chosen


def describe_repeated_ids(split: str, rows: Iterable[tuple[str, object]]) -> list[str]:
    """A sentence if an id comes more than once among the (id, label) of a split."""
    labels: dict[str, list[object]] = {}
    for id, label in rows:
        labels.setdefault(id, []).append(label)
    repeated = {id: found for id, found in labels.items() if len(found) > 1}
    if not repeated:
        return []
    differing = sum(len(set(found) - {None}) > 1 for found in repeated.values())
    contradicting = f", {differing:,} of them with different labels" if differing else ""
    first = f'(the first is "{next(iter(repeated))}")'
    return [f"{len(repeated):,} ids of {split} occur more than once {first}{contradicting}; every row counts"]


def describe_overlap(train: Sequence[Labelled], dev: Sequence[Labelled]) -> list[str]:
    """A sentence if dev has texts of train, and one if train contradicts itself."""
    notes = []
    labels: dict[str, set[object]] = {}
    for example in train:
        labels.setdefault(text_key(example), set()).add(example.label)
    shared = sum(text_key(example) in labels for example in dev)
    if shared:
        notes.append(f"{shared:,} of {len(dev):,} dev examples have a text that is in train too: scores are too good")
    contradictions = sum(len(each) > 1 for each in labels.values())
    if contradictions:
        notes.append(f"{contradictions:,} texts of train occur with different labels")
    return notes
