"""Systems that are measured in turn, so that other jobs on the machine slow them equally."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, get_args

import torch

from bertkit.errors import BertkitError
from bertkit.machine.precision import Precision, measure_bfloat16_speedup, measure_matmul_speed
from bertkit.machine.processor import processor_name
from bertkit.results import Result
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError

OWN = "bertkit"
"""With this the names of bertkit's own systems begin."""

StepMaker = Callable[[], Iterator[int]]
"""Makes steps without end, each with its number of tokens, examples or operations; picklable."""

EXTRA = "bench"
"""The extra that installs the other libraries."""

Argument = TypeVar("Argument")
Outcome = TypeVar("Outcome")
System = TypeVar("System")
Peer = TypeVar("Peer", bound=str)

_WARM_UP = 3
_LEAST_RATIO = 0.5
"""bfloat16 is measured from this share of the speed of float32 on."""


@dataclass(frozen=True, slots=True)
class SystemSpeed:
    """The median speed of one system, and how many times as fast the fastest system of bertkit is.

    The factor ``bertkit_is_faster`` is the median over the rounds, of which every system makes one after the other.
    """

    system: str
    per_second: float
    bertkit_is_faster: float


@dataclass(frozen=True, slots=True, repr=False)
class SpeedComparison(Result):
    """The speeds of several systems in ``unit`` per second; ``left_out`` has the reason for each peer that did not
    run, and for bfloat16 where the processor has to emulate it.

    ``work`` says what was measured, and ``notes`` what else is known about it.
    """

    processor: str
    threads: int
    clock: str
    work: str
    unit: str
    rounds: int
    systems: tuple[SystemSpeed, ...]
    left_out: Mapping[str, str]
    notes: tuple[str, ...] = ()


class StepTimer:
    """A function from seconds to the speed of the steps made in this time, per second; the first call warms up.

    With one thread the clock is the CPU time of the process, which a busy machine distorts less than the wall time.
    """

    def __init__(self, make: StepMaker) -> None:
        self._make = make
        self._steps: Iterator[int] | None = None

    def __call__(self, seconds: float) -> float:
        """At least one step is made."""
        if self._steps is None:
            self._steps = self._make()
            for _ in range(_WARM_UP):
                next(self._steps)
        clock = choose_clock()
        end = time.perf_counter() + seconds
        begin = clock()
        done = next(self._steps)
        while time.perf_counter() < end:
            done += next(self._steps)
        return done / max(1e-9, clock() - begin)


def choose_formats(say: Callable[[str], None]) -> tuple[tuple[Precision, ...], dict[str, str]]:
    """The number formats to measure, and why bfloat16 is left out if it is.

    Without AVX-512 a product in bfloat16 has a tenth to a fifth of the speed of float32: nobody would train with it,
    and a round would take ten minutes.
    """
    ratio = measure_bfloat16_speedup(torch.device("cpu"))
    if ratio >= _LEAST_RATIO:
        return get_args(Precision), {}
    reason = f"bfloat16 is {ratio:.2f} times as fast as float32 on this processor."
    say(f"left out: {reason}")
    return ("float32",), {"bfloat16": reason}


def fastest_of(formats: Sequence[Precision]) -> Precision:
    """The number format in which this processor multiplies matrices fastest."""
    speeds = measure_matmul_speed(torch.device("cpu"))
    return max(formats, key=lambda name: speeds[name])


def add_peers(
    own: Mapping[str, System],
    peers: Sequence[Peer],
    find: Callable[[Peer], Iterable[tuple[str, System]]],
    say: Callable[[str], None],
) -> tuple[dict[str, System], dict[str, str]]:
    """The systems by name, those of ``peers`` last, and the reason why each peer was left out that cannot run here.

    ``find`` raises a usage error for such a peer.
    """
    systems = dict(own)
    left_out: dict[str, str] = {}
    for peer in peers:
        try:
            systems |= dict(find(peer))
        except BertkitError as error:
            left_out[peer] = str(error)
            say(f"left out: {error}")
    return systems, left_out


def choose_clock() -> Callable[[], float]:
    """CPU time with one thread, else wall time."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def clock_name() -> str:
    """The name of ``choose_clock()`` for a person."""
    return "CPU time" if choose_clock() is time.process_time else "wall time"


@contextmanager
def in_processes(
    systems: Mapping[str, Callable[[Argument], Outcome]],
) -> Iterator[dict[str, Callable[[Argument], Outcome]]]:
    """The same functions by name, each called in a process of its own with as many threads as this one has.

    In one process the threads of one library slow another one, and bertkit changes how the C library keeps memory.
    """
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    with ExitStack() as stack:
        yield {
            name: partial(_call, name, stack.enter_context(SubprocessWorker(system, environment=threads)))
            for name, system in systems.items()
        }


def _call(name: str, worker: SubprocessWorker[Argument, Outcome], argument: Argument) -> Outcome:
    try:
        return worker.call(argument)
    except WorkerDiedError as error:
        raise BertkitError(f"{name} ended with {error} and no speed; its own message is above.") from error


def time_steps(
    systems: Mapping[str, StepMaker], *, rounds: int, seconds: float, say: Callable[[str], None]
) -> dict[str, list[float]]:
    """The speed of each system in each round of ``seconds``; one computes at a time."""
    speeds: dict[str, list[float]] = {name: [] for name in systems}
    with in_processes({name: StepTimer(make) for name, make in systems.items()}) as timers:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for name, time_round in timers.items():
                speeds[name].append(time_round(seconds))
    return speeds


def compare(
    speeds: Mapping[str, list[float]],
    *,
    work: str,
    unit: str,
    clock: str,
    left_out: Mapping[str, str],
    notes: tuple[str, ...] = (),
) -> SpeedComparison:
    """The medians of ``speeds``, by system and round, and their ratios to bertkit's system with the highest median."""
    systems = compare_rounds(speeds)
    return SpeedComparison(
        processor=processor_name(),
        threads=torch.get_num_threads(),
        clock=clock,
        work=work,
        unit=unit,
        rounds=len(next(iter(speeds.values()))),
        systems=systems,
        left_out=left_out,
        notes=notes,
    )


def compare_rounds(speeds: Mapping[str, Sequence[float]]) -> tuple[SystemSpeed, ...]:
    """The systems of ``compare``, in the order of ``speeds``."""
    medians = {name: statistics.median(each) for name, each in speeds.items()}
    fastest = speeds[max((name for name in speeds if name.startswith(OWN)), key=lambda name: medians[name])]
    return tuple(
        SystemSpeed(
            system=name,
            per_second=round(medians[name], 2),
            bertkit_is_faster=round(statistics.median(a / b for a, b in zip(fastest, each, strict=True)), 3),
        )
        for name, each in speeds.items()
    )
