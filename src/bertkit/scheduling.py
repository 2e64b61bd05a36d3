"""Pieces of work that need each other, divided among all who start the same command.

Whoever works on a piece holds its lock, which the system lets go with the process that held it, however that ended. So
nothing is done twice, and what was cut off is free for the next. What is finished is known by what it left on the disk.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import BertkitError, DivergenceError
from bertkit.report.progress import Progress
from bertkit.storage.atomic import make_folder
from bertkit.training.distributed import rank, world_size

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Something to make. ``is_done`` says whether it is there; ``needs`` have to be there before.

    A work that is ``shared`` is made by all processes of torchrun together, and any other by one of them.
    """

    name: str
    make: Callable[[Progress], object]
    is_done: Callable[[], bool]
    needs: Sequence[Work] = ()
    shared: bool = False


def in_order(works: Iterable[Work]) -> list[Work]:
    """``works`` and all that they need, each once and after what it needs; equal names are one work."""
    found: dict[str, Work] = {}

    def visit(work: Work) -> None:
        if work.name not in found:
            for need in work.needs:
                visit(need)
            found[work.name] = work

    for work in works:
        visit(work)
    return list(found.values())


def run_all(works: Iterable[Work], locks: Path, progress: Progress) -> dict[str, str]:
    """Make what is not there yet, and wait for what others are making; ``locks`` is a folder for that.

    Returns why a work came to nothing, by its name: a training that diverged, or what needs it. Whatever else goes
    wrong is raised.
    """
    agenda = in_order(works)
    make_folder(locks)
    failed: dict[str, str] = {}
    waits = False
    while left := [work for work in agenda if work.name not in failed and not work.is_done()]:
        progressed = False
        for work in left:
            if lost := [need.name for need in work.needs if need.name in failed]:
                failed[work.name] = f"{lost[0]} has failed"
                continue
            if all(need.is_done() for need in work.needs):
                heading = f"{1 + agenda.index(work)} of {len(agenda)}: {work.name}"
                progressed |= _make(work, locks, progress, heading, failed)
            elif work.shared and world_size() > 1:
                break  # all processes come to the shared works in the same order
        if not progressed:
            if not waits:
                progress.say("waiting for the work of other processes")
            waits = True
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return failed


def _make(work: Work, locks: Path, progress: Progress, heading: str, failed: dict[str, str]) -> bool:
    """Make a work unless somebody else does; whether it was made here."""
    together = work.shared and world_size() > 1
    with _held(locks / f"{work.name.replace('/', '.')}.lock", wanted=not together or rank() == 0) as mine:
        if not mine or (not together and work.is_done()):
            return False
        progress.say(heading)
        try:
            work.make(progress)
        except DivergenceError as error:
            progress.finish()
            progress.say(f"{work.name} has failed: {error}")
            failed[work.name] = str(error)
            return True
    if not work.is_done() and not together:
        raise BertkitError(f"{work.name} was made and is not there: something else deletes it.")
    return True


@contextmanager
def _held(path: Path, *, wanted: bool) -> Iterator[bool]:
    """Whether this process holds the lock; one for which it is not ``wanted`` needs none."""
    if not wanted:
        yield True
        return
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
