"""The search space of a sweep: the settings that it varies, with their values or ranges, and the points of a grid."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.config.records import to_plain
from bertkit.config.settings import Setting, apply, refuse_without_effect
from bertkit.errors import BertkitError, usage_error
from bertkit.finetuning.record import FinetuneRun

PAPER_GRID = {"lr": ("5e-5", "3e-5", "2e-5"), "batch_size": ("16", "32"), "epochs": ("2", "3", "4")}
"""The grid of the paper's section A.3."""

PAPER_RANGES = {"lr": ("2e-5..5e-5",), "batch_size": ("16", "32"), "epochs": ("2..4",)}
"""The same as ranges, for random and TPE trials."""

_ORIGIN = "--grid"
_PATHS = {"lr": "optimizer.lr"}
"""Options whose setting has another path than their name."""

_NOT_VARIED = {
    "task": "run a sweep for each task",
    "task.metric": "the configurations are compared by it",
    "task.heldout": "the configurations are compared on the same dev examples",
    "dev_limit": "the configurations are compared on the same dev examples",
    "output": "every point has its own folder below -o",
    "seeds": "give --seeds N; every point has that many restarts",
    "first_seed": "give --seeds N; every point has that many restarts",
}
_MAX_NAME = 200
"""Characters of a folder name; file systems allow 255."""

_LOGARITHMIC_FROM = 10
"""A range whose ends differ by this factor or more is sampled logarithmically."""


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values, as they were typed, by the names of the axes."""

    values: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The name of the point's folder: ``lr=3e-5,batch_size=16``."""
        return re.sub(r"[^\w.,=+-]", "_", ",".join(f"{name}={value}" for name, value in self.values))

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values)

    def run(self, base: FinetuneRun, output: Path) -> FinetuneRun:
        """The fine-tuning run of this point; raises a usage error for a value that its setting cannot have."""
        return replace(apply(base, self._settings()), output=output)

    def origins(self) -> dict[str, str]:
        """The origin of each setting that is varied, by its path."""
        return {each.path: each.origin for each in self._settings()}

    def _settings(self) -> list[Setting]:
        return [Setting(_path_of(name), value, _ORIGIN, is_text=True) for name, value in self.values]


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that is varied: over ``values``, or in the range from ``low`` to ``high``, both included."""

    name: str
    values: tuple[str, ...] = ()
    low: int | float = 0
    high: int | float = 0

    @property
    def path(self) -> str:
        """The path of the setting."""
        return _path_of(self.name)

    @property
    def is_integer(self) -> bool:
        """Whether only integers are sampled from the range: both of its ends are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def is_logarithmic(self) -> bool:
        """Whether the logarithm is sampled uniformly, so that 1e-5 to 1e-4 is as likely as 1e-4 to 1e-3."""
        return not self.is_integer and self.high >= _LOGARITHMIC_FROM * self.low > 0

    @property
    def candidates(self) -> tuple[str, ...]:
        """The values to check: the listed ones, or the ends of the range; if both are valid, so are all between."""
        return self.values or (str(self.low), str(self.high))


def read_axes(
    grid: Sequence[str] | Mapping[str, object],
    *,
    given: Collection[str] = (),
    measured: Mapping[str, object] | None = None,
    ranges: bool = False,
) -> tuple[Axis, ...]:
    """The axes of ``("lr=5e-5,3e-5", "epochs=2..4")``, or of a mapping; without any, the usual ones.

    ``given`` are the paths of settings that have one value for all points: the usual axes are used without them, and
    any other axis must not be among them. ``measured`` are the settings of a small model. ``ranges`` allows ranges.
    """
    varied = _list_values(grid) if isinstance(grid, Mapping) else _split(grid)
    if not varied:
        usual = _usual_axes(measured or {}, ranges=ranges)
        varied = {name: values for name, values in usual.items() if _path_of(name) not in given}
        if not varied:
            raise usage_error(
                f"nothing is varied: {', '.join(usual)} have one value each. Name settings with {_ORIGIN}."
            )
    paths: dict[str, str] = {}
    for name in varied:
        path = _path_of(name)
        if name in _NOT_VARIED:
            raise usage_error(f"{_ORIGIN}: {name} cannot be varied: {_NOT_VARIED[name]}.")
        if path in given:
            raise usage_error(f"{name} is in {_ORIGIN} and has a value of its own. Give it only once.")
        if path in paths:
            raise usage_error(f"{_ORIGIN}: {paths[path]} and {name} are one setting. List all its values after one =.")
        paths[path] = name
    axes = tuple(_read_axis(name, [_spell(value) for value in values]) for name, values in varied.items())
    for axis in axes:
        if not axis.values and not ranges:
            raise usage_error(f"{_ORIGIN} {axis.name}={axis.low}..{axis.high}: a range needs --trials N.")
    return axes


def _usual_axes(measured: Mapping[str, object], *, ranges: bool) -> Mapping[str, Sequence[object]]:
    """The paper's axes; for a small model rates around the ``measured`` one, and its number of epochs alone, as each
    run keeps its best epoch."""
    usual: Mapping[str, Sequence[object]] = PAPER_RANGES if ranges else PAPER_GRID
    rate = measured.get("optimizer.lr")
    if not isinstance(rate, float):
        return usual
    rates = (f"{rate / 3:.2g}..{3 * rate:.2g}",) if ranges else tuple(f"{each * rate:.2g}" for each in (2, 1, 0.5))
    return {"lr": rates, **{name: usual[name] for name in ("batch_size", "epochs") if name not in measured}}


def _list_values(grid: Mapping[str, object]) -> dict[str, Sequence[object]]:
    found: dict[str, Sequence[object]] = {}
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise usage_error(f"{_ORIGIN}: {name} is {values!r}, and must be a list of values: [{values!r}].")
        found[name] = list(values)
    return found


def _spell(value: object) -> str:
    """A value of Python as the command line has it, such as ``null``; a path, or a number of NumPy, as it prints."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except TypeError:
        return str(value)


def _path_of(name: str) -> str:
    return _PATHS.get(name, name)


def _split(grid: Sequence[str]) -> dict[str, Sequence[object]]:
    found: dict[str, Sequence[object]] = {}
    for word in grid:
        name, equals, values = word.partition("=")
        if not equals or not name or not all(values.split(",")):
            raise usage_error(f"{_ORIGIN} {word}: expected setting=value,value,... such as lr=5e-5,3e-5.")
        if name in found:
            raise usage_error(f"{_ORIGIN}: {name} is given twice. List all its values after one =.")
        found[name] = values.split(",")
    return found


def _read_axis(name: str, values: Sequence[str]) -> Axis:
    if len(values) == 1 and ".." in values[0]:
        return _read_range(name, values[0])
    doubled = [value for place, value in enumerate(values) if value in values[:place]]
    if doubled or not values:
        what = f"{doubled[0]} is given twice" if doubled else "there is no value"
        raise usage_error(f"{_ORIGIN} {name}: {what}.")
    return Axis(name, tuple(values))


def fit_ranges(axes: Sequence[Axis], base: FinetuneRun) -> tuple[Axis, ...]:
    """The axes of settings of ``base``: between whole ends all numbers are sampled if the setting takes others too."""
    return tuple(
        replace(axis, low=float(axis.low), high=float(axis.high)) if _takes_fractions(axis, base) else axis
        for axis in axes
    )


def _takes_fractions(axis: Axis, base: FinetuneRun) -> bool:
    if axis.values or not axis.is_integer:
        return False
    try:
        Point(((axis.name, str(axis.low + 0.5)),)).run(base, base.output)
    except BertkitError:
        return False
    return True


def _read_range(name: str, text: str) -> Axis:
    ends = text.split("..")
    try:
        low, high = (int(end) if end.lstrip("-").isdecimal() else float(end) for end in ends)
    except ValueError as error:
        raise usage_error(f"{_ORIGIN} {name}={text}: expected LOW..HIGH, two numbers.") from error
    if not low < high:
        raise usage_error(f"{_ORIGIN} {name}={text}: the lower end must come first.")
    return Axis(name, low=low, high=high)


def refuse_unread(base: FinetuneRun, axes: Sequence[Axis], given: Sequence[Setting]) -> None:
    """Raise a usage error for a setting, one of the axes or ``given``, that no point reads."""
    varied = {axis.path: axis.candidates for axis in axes}
    refuse_without_effect(base, [*given, *(Setting(path, None, _ORIGIN) for path in varied)], varied=varied)


def grid_points(axes: Sequence[Axis]) -> Iterator[Point]:
    """Every point of the grid; the last axis varies fastest."""
    for values in itertools.product(*(axis.candidates for axis in axes)):
        yield Point(tuple(zip((axis.name for axis in axes), values, strict=True)))


def checked_runs(axes: Sequence[Axis], base: FinetuneRun, *, sampled: bool) -> Iterator[FinetuneRun]:
    """The run of every point of the grid; of points that are ``sampled``, those in which one axis has each of its ends.

    Raises a usage error for a value that its setting cannot have, and for points with the same settings or folder.
    """
    folders: set[str] = set()
    points: dict[str, Point] = {}
    for point in _vary_one(axes) if sampled else grid_points(axes):
        run = point.run(base, base.output)
        settings = json.dumps(to_plain(run), sort_keys=True)
        if settings in points:
            raise usage_error(f"{_ORIGIN}: {points[settings]} and {point} are the same settings. List them once.")
        points[settings] = point
        if point.name in folders or len(point.name) > _MAX_NAME:
            raise usage_error(
                f"{_ORIGIN}: {point} has no folder name of its own. Vary fewer settings, or give shorter values."
            )
        folders.add(point.name)
        yield run


def _vary_one(axes: Sequence[Axis]) -> Iterator[Point]:
    """The first end of every axis, and then all other ends of one axis after the other: their product may be huge."""
    first = {axis.name: axis.candidates[0] for axis in axes}
    yield Point(tuple(first.items()))
    for axis in axes:
        for value in axis.candidates[1:]:
            yield Point(tuple((first | {axis.name: value}).items()))
