"""Progress of long jobs: a bar on a terminal, a line in a notebook, plain lines elsewhere, JSON lines for programs,
or nothing.

It is written to stderr, so that results on stdout can be piped. In a program that shows the messages of the logger
``bertkit``, they are logged instead, at the level INFO; a higher level of that logger silences them.
"""

from __future__ import annotations

import logging
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from bertkit.config.records import to_plain
from bertkit.errors import count_of
from bertkit.escaping import printable, to_json
from bertkit.options.job import ProgressMode

LOGGER = logging.getLogger("bertkit")
LOGGER.addHandler(logging.NullHandler())

_MOST_HOURS = 100
_NARROWEST_BAR = 8
"""Characters of the bar."""

Item = TypeVar("Item")


@dataclass
class _Job:
    """The current job; ``total`` is None if the total is unknown, as on stdin.

    ``first`` is the ``done`` of the first report: a resumed job starts in the middle.

    ``part`` is what is done within the current unit. The speed is measured ``since`` the end of the first unit, a time
    and the ``done`` of then: the first unit takes longer than the others because it includes the start-up.
    """

    name: str
    total: int | None
    unit: str
    begin: float
    done: int = 0
    first: int | None = None
    since: tuple[float, int] | None = None
    part: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begin

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the speed so far; None until a unit after the first one is done."""
        if self.total is None or self.since is None or self.done <= self.since[1]:
            return None
        begin, done = self.since
        return (self.total - self.done) * (time.monotonic() - begin) / (self.done - done)


class _View(ABC):
    """One way to show messages and jobs."""

    def __init__(self) -> None:
        self.stream = sys.stderr

    def message(self, text: str) -> None:
        """Show one line."""
        print(text, file=self.stream, flush=True)

    @abstractmethod
    def update(self, job: _Job) -> None:
        """Show the progress of the job."""

    @abstractmethod
    def end(self, job: _Job) -> None:
        """Remove the job, and show its summary."""


class _Quiet(_View):
    def message(self, text: str) -> None:
        pass

    def update(self, job: _Job) -> None:
        pass

    def end(self, job: _Job) -> None:
        pass


class _Lines(_View):
    """A line at the start of a job and then every few seconds."""

    SECONDS_BETWEEN = 5.0

    def __init__(self) -> None:
        super().__init__()
        self._next_line = 0.0

    def update(self, job: _Job) -> None:
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + self.SECONDS_BETWEEN
            self.line(job)

    def line(self, job: _Job) -> None:
        self.message(_progress_line(job))

    def end(self, job: _Job) -> None:
        self._next_line = 0.0
        self.message(_summary(job))


class _Notebook(_Lines):
    """One line per job, replaced every second: a notebook keeps every line, and a job of an hour has 720 plain ones.

    A carriage return goes back to the start of the line, and spaces hide the rest of a longer text.
    """

    SECONDS_BETWEEN = 1.0

    def __init__(self) -> None:
        super().__init__()
        self._width = 0

    def line(self, job: _Job) -> None:
        self._write(_progress_line(job), end="")

    def message(self, text: str) -> None:
        self._write(text, end="\n")

    def _write(self, text: str, end: str) -> None:
        start = "\r" if self._width else ""
        print(start + text.ljust(self._width), end=end, file=self.stream, flush=True)
        self._width = 0 if end else len(text)


class _Log(_Lines):
    """The same lines as messages of the logger."""

    def message(self, text: str) -> None:
        LOGGER.info("%s", text)


class _JsonLines(_Lines):
    """A JSON record per line, as often as ``_Lines``."""

    def message(self, text: str) -> None:
        self._write({"event": "message", "text": text})

    def line(self, job: _Job) -> None:
        self._write({"event": "progress", **_record(job), "seconds_left": job.seconds_left})

    def end(self, job: _Job) -> None:
        self._next_line = 0.0
        self._write({"event": "finished", **_record(job), "seconds": round(job.seconds, 3)})

    def _write(self, record: Mapping[str, object]) -> None:
        print(to_json(to_plain(record)), file=self.stream, flush=True)


class _Bar(_View):
    """A bar at the bottom of the terminal; messages scroll above it."""

    def __init__(self) -> None:
        super().__init__()
        # The bar gets the width that the texts leave.
        bar = BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=_NARROWEST_BAR))
        name, figures = (TextColumn(each, markup=False) for each in ("{task.description}", "{task.fields[figures]}"))
        columns = (name, bar, figures)
        console = Console(file=self.stream, highlight=False, markup=False, emoji=False)
        self._bar = RichProgress(*columns, console=console, transient=True, expand=True)
        self._task: TaskID | None = None

    def message(self, text: str) -> None:
        self._bar.console.print(text, soft_wrap=True)

    def update(self, job: _Job) -> None:
        done = f"{job.done:,}" if job.total is None else f"{job.done:,}/{job.total:,}"
        figures = _fit([done, *_figures(job)], self._bar.console.width - len(job.name))
        if self._task is None:
            self._task = self._bar.add_task(job.name, total=job.total, figures=figures)
            self._bar.start()
        self._bar.update(self._task, completed=job.done, figures=figures)

    def end(self, job: _Job) -> None:
        if self._task is not None:
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None
        self.message(_summary(job))


def _automatic_view() -> type[_View]:
    """The view that the program asks for by its settings of the logger; else the one that suits stderr."""
    if LOGGER.isEnabledFor(logging.INFO) and _has_handler(LOGGER):
        return _Log
    if LOGGER.level > logging.INFO or sys.stderr is None:  # as in a program without a console
        return _Quiet
    if sys.stderr.isatty():
        return _Bar
    return _Notebook if Console(file=sys.stderr).is_jupyter else _Lines


def _has_handler(logger: logging.Logger) -> bool:
    """Whether messages of the logger arrive anywhere."""
    if not all(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        return True
    return logger.propagate and logger.parent is not None and _has_handler(logger.parent)


_VIEWS: dict[ProgressMode, type[_View]] = {"plain": _Lines, "json": _JsonLines, "quiet": _Quiet}


class Progress:
    """Shows the messages of a run and the progress of its current job; leaving ``with`` ends an interrupted job."""

    def __init__(self, mode: ProgressMode = "auto") -> None:
        self.mode = mode
        self._view = (_VIEWS.get(mode) or _automatic_view())()
        self._job: _Job | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def say(self, text: str) -> None:
        """Show one line."""
        self._view.message(printable(text))

    def start(self, job: str, total: int | None, unit: str) -> None:
        """Start a job of ``total`` units, such as "step" or "file"; None if the total is unknown.

        The previous job ends.
        """
        self.finish()
        self._job = _Job(printable(job), total, unit, begin=time.monotonic())

    def advance(self, done: int, **figures: float) -> None:
        """Report the number of units done so far, and current figures such as ``loss``."""
        assert self._job is not None, "advance without start"
        if self._job.first is None:
            # The speed is measured from the first report: earlier units may have been done by another process.
            self._job.first, self._job.begin = done, time.monotonic()
        elif self._job.since is None and done > self._job.first:
            self._job.since = time.monotonic(), done
        self._job.done, self._job.figures, self._job.part = done, figures, ""
        self._view.update(self._job)

    def part(self, name: str, done: int, total: int) -> None:
        """Report progress within the current unit, such as an evaluation between two steps."""
        if self._job is not None and self._job.first is not None:
            self._job.part = f"{name} {done / total:.0%}" if done < total else ""
            self._view.update(self._job)

    def watch(self, name: str, items: Iterable[Item], total: int) -> Iterator[Item]:
        """The items, of which there are ``total``, each of them reported as a part of the current unit."""
        for done, item in enumerate(items, 1):
            yield item
            self.part(name, done, total)

    def finish(self) -> None:
        """End the job, complete or not; a job without progress is not shown."""
        job, self._job = self._job, None
        if job is not None and job.first is not None:
            self._view.end(job)


def describe_duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``2 h 05 min``, ``13 days``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes >= _MOST_HOURS * 60:
        return f"{minutes / 60 / 24:,.0f} days"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def _summary(job: _Job) -> str:
    of_all = "" if job.total in (job.done, None) else f"{job.done:,} of "
    units = count_of(job.done if job.total is None else job.total, job.unit)
    taken = "" if job.unit == "second" else f" in {describe_duration(job.seconds)}"  # those of earlier processes count
    return f"{job.name}: {of_all}{units}{taken}"


def _progress_line(job: _Job) -> str:
    if job.total is None:
        return ", ".join([f"{job.name}: {count_of(job.done, job.unit)}", *_figures(job)])
    share = f"{job.done / job.total:.0%}" if job.total else "100%"
    return ", ".join([f"{job.name}: {job.done:,} of {count_of(job.total, job.unit)} ({share})", *_figures(job)])


def _figures(job: _Job) -> list[str]:
    """What is shown of a job, the most important first: its part, the time left and its figures, such as the loss."""
    shown = [job.part] if job.part else []
    left = job.seconds_left
    if left is not None and left > 0:
        shown.append(f"{describe_duration(left)} left")
    return [*shown, *(f"{name} {_number(value)}" for name, value in job.figures.items())]


def _fit(figures: Sequence[str], width: int) -> str:
    """As many figures as fit into ``width`` characters beside the narrowest bar; the last ones are left out first."""
    shown = list(figures)
    while len(shown) > 1 and len(", ".join(shown)) + _NARROWEST_BAR + 2 > width:
        shown.pop()
    return ", ".join(shown)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _record(job: _Job) -> dict[str, object]:
    part = {"part": job.part} if job.part else {}
    return {"job": job.name, "done": job.done, "total": job.total, "unit": job.unit, **job.figures, **part}
