"""The range of every number that a user can set, stated in the type of its field.

    heldout: ShareBelowOne = 0.01

A record checks its fields when it is built (``check_ranges``), and ``apply`` checks a setting before that, so that the
error names its whole path. NaN and infinity are in no range. Upper ends are beyond all sensible values: they
keep a slip of the keyboard from running for years, and numbers from overflowing.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar

from bertkit.errors import usage_error

Note = TypeVar("Note")


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from ``low`` to ``high``; ``low`` itself is left out with ``above``, ``high`` with ``below``."""

    low: float
    high: float
    above: bool = False
    below: bool = False

    def __contains__(self, number: Any) -> bool:
        from_low = number > self.low if self.above else number >= self.low
        to_high = number < self.high if self.below else number <= self.high
        return bool(from_low and to_high)

    def __str__(self) -> str:
        low, high = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (self.low, self.high))
        if not (self.above or self.below):
            return f"from {low} to {high}"
        return f"{'above' if self.above else 'at least'} {low} and {'below' if self.below else 'at most'} {high}"


_MOST = 1_000_000_000
LARGEST_MAGNITUDE = 1e100
"""Squares of such numbers are still finite in float64."""

PositiveInt = Annotated[int, Range(1, _MOST)]
NonNegativeInt = Annotated[int, Range(0, _MOST)]
Repetitions = Annotated[int, Range(1, 1_000_000)]
"""Epochs, restarts, trials."""

BatchSize = Annotated[int, Range(1, 1_000_000)]
Seed = Annotated[int, Range(0, 2**32 - 1)]
Processes = Annotated[int, Range(1, 1024)]
Threads = Annotated[int, Range(0, 1024)]
Width = Annotated[int, Range(1, 1_000_000)]
"""Neurons of a layer, or heads."""

Layers = Annotated[int, Range(1, 10_000)]
ExtraLayers = Annotated[int, Range(0, 10_000)]
Length = Annotated[int, Range(1, 1_000_000)]
"""Tokens of a row, or positions."""

WordLength = Annotated[int, Range(3, 1000)]
"""Characters of a word, with one that begins and one that ends it."""

TaskLength = Annotated[int, Range(3, 1_000_000)]
"""Tokens of a feature: [CLS], a token and [SEP] at least."""

Neighbours = Annotated[int, Range(1, 1_000_000)]
VocabularySize = Annotated[int, Range(1, 2_000_000)]
Minutes = Annotated[float, Range(0, 10_000_000, above=True)]
Share = Annotated[float, Range(0, 1)]
ShareAboveZero = Annotated[float, Range(0, 1, above=True)]
ShareBelowOne = Annotated[float, Range(0, 1, below=True)]
OpenShare = Annotated[float, Range(0, 1, above=True, below=True)]
LearningRate = Annotated[float, Range(0, 1000)]
NonNegativeFloat = Annotated[float, Range(0, _MOST)]
PositiveFloat = Annotated[float, Range(0, _MOST, above=True)]
RotaryBase = Annotated[float, Range(1, 1_000_000_000_000, above=True)]
FiniteFloat = Annotated[float, Range(-LARGEST_MAGNITUDE, LARGEST_MAGNITUDE)]


def check_ranges(record: Any) -> None:
    """Raise a usage error for the first field of the record that is outside its range, or none of its choices."""
    kind: Any = type(record)
    for name, hint in _ranged_fields(kind).items():
        for problem in list_problems(name, getattr(record, name), hint):
            raise usage_error(problem)


def list_problems(name: str, value: object, hint: object) -> Iterator[str]:
    """What is wrong with each number in ``value`` that is outside the range in its type ``hint``, or with a value that
    is none of its choices."""
    arguments, origin = typing.get_args(hint), typing.get_origin(hint)
    if origin is Annotated:
        kind, *notes = arguments
        for range in notes:
            if isinstance(range, Range):
                yield from _compare(name, value, kind, range)
    elif origin is Literal and value not in arguments:
        yield f"{name} is {value}; it must be {' or '.join(map(str, arguments))}."
    elif is_union(hint):
        for each in arguments if value is not None else ():
            yield from list_problems(name, value, each)
    elif origin is tuple and isinstance(value, Sequence):
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        for item, each in zip(value, kinds, strict=False):
            yield from list_problems(name, item, each)
    elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        for key, item in value.items():
            yield from list_problems(f"{name}.{key}", item, arguments[1])


def is_union(hint: object) -> bool:
    """Whether a type is written ``A | B``, ``Union[A, B]`` or ``Optional[A]``."""
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def find_range(hint: object) -> Range | None:
    """The range in a type such as ``PositiveInt | None``; None without one."""
    return find_note(hint, Range)


def find_note(hint: object, kind: type[Note]) -> Note | None:
    """The first note of this kind in a type such as ``Annotated[int, Range(1, 9)] | None``; None without one."""
    arguments = typing.get_args(hint)
    notes = (each if isinstance(each, kind) else find_note(each, kind) for each in arguments)
    return next(filter(None, notes), None)


def _compare(name: str, value: object, kind: object, range: Range) -> Iterator[str]:
    if not isinstance(value, Integral if kind is int else Real) or isinstance(value, bool):
        yield f"{name} is {value!r}; it must be a {'whole ' if kind is int else ''}number {range}."
    elif value not in range:
        yield f"{name} is {value}; it must be {range}."


@cache
def _ranged_fields(record: type[Any]) -> dict[str, object]:
    hints = typing.get_type_hints(record, include_extras=True)
    return {name: hint for name, hint in hints.items() if _is_limited(hint)}


def _is_limited(hint: object) -> bool:
    return find_range(hint) is not None or typing.get_origin(hint) is Literal
