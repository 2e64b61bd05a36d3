"""Units of work that depend on each other, divided among all processes that start the same command.

A process that makes a unit holds its lock, which the operating system releases when the process ends, however it ends.
So nothing is made twice, and an interrupted unit is free for the next process. A unit is finished when its output is
on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import BertkitError, DivergenceError, usage_error
from bertkit.report.progress import Progress
from bertkit.storage.atomic import make_folder
from bertkit.storage.locks import LockHeldError, exclusive_lock
from bertkit.training.distributed import rank, world_size

_SECONDS_BETWEEN_ATTEMPTS = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """Something to make. ``is_done`` says whether its output is there; the units in ``needs`` must be done before.

    ``failure`` is the reason why its training diverged, read from its output; empty if it did not. A ``shared`` unit is
    made by all processes of torchrun together, any other by one of them.
    """

    name: str
    make: Callable[[Progress], object]
    is_done: Callable[[], bool]
    needs: Sequence[Unit] = ()
    failure: Callable[[], str] = lambda: ""
    shared: bool = False


def order_units(units: Iterable[Unit]) -> list[Unit]:
    """``units`` and all that they need, each once and after what it needs; units of the same name are one unit."""
    found: dict[str, Unit] = {}

    def visit(unit: Unit) -> None:
        if unit.name not in found:
            for need in unit.needs:
                visit(need)
            found[unit.name] = unit

    for unit in units:
        visit(unit)
    return list(found.values())


def divide_work(
    attempt: Callable[[], bool],
    is_done: Callable[[], bool],
    progress: Progress,
    after_wait: Callable[[], None] = lambda: None,
) -> None:
    """Call ``attempt`` until ``is_done``, while other processes may do the same.

    ``attempt`` does the work that no other process does at the moment, and returns whether there was any. If there was
    none, it is called again every half second, because another process may finish its work or die. ``after_wait`` may
    raise an exception to stop.
    """
    announced = False
    while True:
        if attempt():
            continue
        if is_done():
            return
        if not announced:
            progress.say("waiting for the work of other processes")
        announced = True
        time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
        after_wait()


def run_all(units: Iterable[Unit], locks: Path, progress: Progress) -> dict[str, str]:
    """Make every unit whose output is missing, and wait for those that others make; their locks are in ``locks``.

    Returns the reason of each failure by the name of the unit: its training diverged, or it needs one that failed. All
    other errors are raised.
    """
    order = order_units(units)
    make_folder(locks)
    failed: dict[str, str] = {}

    def unfinished() -> list[Unit]:
        return [unit for unit in order if unit.name not in failed and not unit.is_done()]

    def attempt() -> bool:
        progressed = False
        for unit in unfinished():
            if failed_needs := [need.name for need in unit.needs if need.name in failed]:
                failed[unit.name] = f"{failed_needs[0]} has failed"
            elif reason := unit.failure():  # in another process, or before the command was repeated
                _report_failure(unit, reason, progress, failed)
            elif all(need.is_done() for need in unit.needs):
                heading = f"{1 + order.index(unit)} of {len(order)}: {unit.name}"
                progressed |= _make(unit, locks, progress, heading, failed)
            elif _is_made_together(unit):
                break  # all processes must reach the shared units in the same order
        return progressed

    divide_work(attempt, lambda: not unfinished(), progress)
    return failed


def _make(unit: Unit, locks: Path, progress: Progress, heading: str, failed: dict[str, str]) -> bool:
    """Make a unit unless another process does; returns whether it was made here."""
    together = _is_made_together(unit)
    holds_lock = not together or rank() == 0
    try:
        with exclusive_lock(locks / f"{unit.name.replace('/', '.')}.lock") if holds_lock else nullcontext():
            if not together and (unit.is_done() or unit.failure()):
                return False
            progress.say(heading)
            unit.make(progress)
    except LockHeldError as error:
        if together:  # the other processes have begun, and would wait for this one
            message = (
                f"another job makes {unit.name}; what torchrun starts cannot share it. Wait, or choose another -o."
            )
            raise usage_error(message) from error
        return False
    except DivergenceError as error:
        _report_failure(unit, str(error), progress, failed)
        return True
    if not unit.is_done() and not together:
        raise BertkitError(f"{unit.name} has finished but its output is gone. Does another process delete it?")
    return True


def _is_made_together(unit: Unit) -> bool:
    return unit.shared and world_size() > 1


def _report_failure(unit: Unit, reason: str, progress: Progress, failed: dict[str, str]) -> None:
    progress.finish()
    progress.say(f"{unit.name} has failed: {reason} Delete its folder to train it again.")
    failed[unit.name] = reason
