"""What a sweep varies: settings with their values or ranges, and the points that they span."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertkit.config import Setting, apply
from bertkit.errors import usage_error
from bertkit.finetuning.record import FinetuneRun

PAPER_GRID = {"lr": ("5e-5", "3e-5", "2e-5"), "batch_size": ("16", "32"), "epochs": ("2", "3", "4")}
"""Section A.3 of the paper."""

PAPER_RANGES = {"lr": ("2e-5..5e-5",), "batch_size": ("16", "32"), "epochs": ("2..4",)}
"""The same for trials."""

_ORIGIN = "--grid"
_PATHS = {"lr": "optimizer.lr"}
"""Options whose setting has a longer path than their name."""

_NOT_VARIED = {
    "task": "run a sweep for each task",
    "output": "every point has its own folder below -o",
    "seeds": "give --seeds N; every point has that many restarts",
    "first_seed": "give --seeds N; every point has that many restarts",
}
_LONGEST_NAME = 200
_TENFOLD = 10


@dataclass(frozen=True, slots=True)
class Point:
    """Values for the settings of a sweep, as they were typed, by the names of its axes."""

    values: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The name of its folder: ``lr=3e-5,batch_size=16``."""
        return re.sub(r"[^\w.,=+-]", "_", ",".join(f"{name}={value}" for name, value in self.values))

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values)

    def run(self, base: FinetuneRun, output: Path) -> FinetuneRun:
        """The fine-tuning of this point; a value that its setting cannot take is an error."""
        settings = [Setting(_PATHS.get(name, name), value, _ORIGIN, is_text=True) for name, value in self.values]
        return replace(apply(base, settings), output=output)


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that is varied: over ``values``, or from ``low`` to ``high``, both included."""

    name: str
    values: tuple[str, ...] = ()
    low: int | float = 0
    high: int | float = 0

    @property
    def is_whole(self) -> bool:
        """Whether the ends of the range are whole numbers, and so all numbers drawn from it."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def is_logarithmic(self) -> bool:
        """Whether 1e-5 to 1e-4 is drawn as often as 1e-4 to 1e-3: where the ends differ tenfold or more."""
        return not self.is_whole and self.high >= _TENFOLD * self.low > 0

    @property
    def ends(self) -> tuple[str, ...]:
        """The values that have to be possible for all to be."""
        return self.values or (str(self.low), str(self.high))


def read_axes(
    grid: Sequence[str] | Mapping[str, Sequence[Any]], *, given: Collection[str] = (), ranges: bool = False
) -> tuple[Axis, ...]:
    """The axes of ``("lr=5e-5,3e-5", "epochs=2..4")``, or of a mapping; without any, those of the paper.

    Of the paper's, options that were ``given`` are left out; otherwise an option cannot be given and varied.
    ``ranges`` says that there may be some.
    """
    asked: dict[str, Sequence[Any]] = dict(grid) if isinstance(grid, Mapping) else _split(grid)
    if not asked:
        paper = PAPER_RANGES if ranges else PAPER_GRID
        asked = {name: values for name, values in paper.items() if name not in given}
    for name in asked:
        if name in _NOT_VARIED:
            raise usage_error(f"{_ORIGIN}: {name} cannot be varied: {_NOT_VARIED[name]}.")
        if name in given:
            raise usage_error(f"{name} is in {_ORIGIN} and an option of its own. Give one of them.")
    axes = tuple(_read_axis(name, [str(value) for value in values]) for name, values in asked.items())
    for axis in axes:
        if not axis.values and not ranges:
            raise usage_error(f"{_ORIGIN} {axis.name}={axis.low}..{axis.high}: a range needs --trials N.")
    return axes


def _split(grid: Sequence[str]) -> dict[str, Sequence[str]]:
    asked: dict[str, Sequence[str]] = {}
    for word in grid:
        name, equals, values = word.partition("=")
        if not equals or not name or not all(values.split(",")):
            raise usage_error(f"{_ORIGIN} {word}: expected setting=value,value,... such as lr=5e-5,3e-5.")
        if name in asked:
            raise usage_error(f"{_ORIGIN}: {name} is there twice. Put all its values behind one =.")
        asked[name] = values.split(",")
    return asked


def _read_axis(name: str, values: Sequence[str]) -> Axis:
    if len(values) == 1 and ".." in values[0]:
        return _read_range(name, values[0])
    doubled = [value for place, value in enumerate(values) if value in values[:place]]
    if doubled or not values:
        what = f"{doubled[0]} is there twice" if doubled else "there is no value"
        raise usage_error(f"{_ORIGIN} {name}: {what}.")
    return Axis(name, tuple(values))


def _read_range(name: str, text: str) -> Axis:
    ends = text.split("..")
    try:
        low, high = (int(end) if end.lstrip("-").isdecimal() else float(end) for end in ends)
    except ValueError as error:
        raise usage_error(f"{_ORIGIN} {name}={text}: expected LOW..HIGH, two numbers.") from error
    if not low < high:
        raise usage_error(f"{_ORIGIN} {name}={text}: the lower end comes first.")
    return Axis(name, low=low, high=high)


def span(axes: Sequence[Axis]) -> Iterator[Point]:
    """Every point of a grid, the last axis running fastest."""
    for values in itertools.product(*(axis.ends for axis in axes)):
        yield Point(tuple(zip((axis.name for axis in axes), values, strict=True)))


def check(axes: Sequence[Axis], base: FinetuneRun) -> None:
    """Raise for a value that its setting cannot take, and for points that would share a folder."""
    folders: dict[str, Point] = {}
    for point in span(axes):
        point.run(base, base.output)
        if point.name in folders or len(point.name) > _LONGEST_NAME:
            raise usage_error(f"{_ORIGIN}: no folder can be named after {point}. Vary fewer settings, or shorter ones.")
        folders[point.name] = point
