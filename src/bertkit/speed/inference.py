"""The speed of inference: systems that make vectors of texts, measured in turn, each in a process of its own."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.machine.processor import processor_name
from bertkit.options.speed import InferencePeer
from bertkit.results import Result
from bertkit.speed.inference_systems import Embed, EmbedMaker, own_systems, peer_systems
from bertkit.speed.rounds import (
    SystemSpeed,
    add_peers,
    choose_clock,
    choose_formats,
    clock_name,
    compare_rounds,
    in_processes,
)

_LONGEST_JOIN = 16
_SINGLE_TEXTS = 30


@dataclass(frozen=True, slots=True)
class VectorSpeed:
    """The median speed of one system: texts per second in batches, and the time of one text alone.

    The factors ``..._bertkit_is_faster`` are medians over the rounds, as in ``SystemSpeed``; systems in int8 are
    compared with bertkit in int8, others with the fastest of bertkit's others. ``cosine`` is the smallest to bertkit's
    vectors in float32.
    """

    system: str
    texts_per_second: float
    texts_bertkit_is_faster: float
    long_texts_per_second: float
    long_texts_bertkit_is_faster: float
    one_text_ms: float
    cosine: float


@dataclass(frozen=True, slots=True, repr=False)
class InferenceSpeed(Result):
    """The result of ``bench inference``; ``left_out`` is that of ``SpeedComparison``."""

    processor: str
    threads: int
    texts: int
    long_texts: int
    clock: str
    systems: tuple[VectorSpeed, ...]
    left_out: Mapping[str, str]


def compare_systems(
    folder: Path, texts: Sequence[str], peers: Sequence[InferencePeer], *, rounds: int, say: Callable[[str], None]
) -> InferenceSpeed:
    """Measure bertkit and ``peers`` with the model in ``folder`` on ``texts``, and on long texts made of them.

    With one thread the clock is the CPU time of the process, which a busy machine distorts less than the wall time.
    """
    long = join_texts(texts)
    with tempfile.TemporaryDirectory() as temporary:
        formats, emulated = choose_formats(say)
        own = dict(own_systems(folder, formats))
        find = partial(peer_systems, folder, formats, Path(temporary))
        systems, left_out = add_peers(own, peers, find, say)
        timers = {name: VectorTimer(make, texts, long) for name, make in systems.items()}
        with in_processes(timers) as started:
            measured = measure(started, texts, long, rounds=rounds, say=say)
    return InferenceSpeed(
        processor=processor_name(),
        threads=torch.get_num_threads(),
        texts=len(texts),
        long_texts=len(long),
        clock=clock_name(),
        systems=tuple(measured),
        left_out={**emulated, **left_out},
    )


def join_texts(texts: Sequence[str]) -> list[str]:
    """Longer texts, made of 1 to 16 consecutive ones; every text is used once."""
    joined: list[str] = []
    place = 0
    while place < len(texts):
        size = 1 + (7 * len(joined)) % _LONGEST_JOIN
        joined.append(" ".join(texts[place : place + size]))
        place += size
    return joined


@dataclass(frozen=True, slots=True, eq=False)
class VectorTimes:
    """Seconds of one round: of all texts, of all long texts, and of single texts; and the vectors (N, H) of the texts,
    each of length 1."""

    texts: float
    long_texts: float
    single: list[float]
    vectors: NDArray[np.floating]


class VectorTimer:
    """Measures rounds of a system, which is loaded at the first."""

    def __init__(self, make: EmbedMaker, texts: Sequence[str], long: Sequence[str]) -> None:
        self._make = make
        self._texts, self._long = texts, long
        self._embed: Embed | None = None

    def __call__(self, number: int) -> VectorTimes:
        """The times of the round of this number."""
        if self._embed is None:
            self._embed = self._make()
        texts, vectors = self._time(self._texts)
        long_texts, _ = self._time(self._long)
        step = max(1, len(self._texts) // _SINGLE_TEXTS)
        return VectorTimes(
            texts=texts,
            long_texts=long_texts,
            single=[self._time([text])[0] for text in self._texts[::step]],
            vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        )

    def _time(self, texts: Sequence[str]) -> tuple[float, Any]:
        assert self._embed is not None
        clock = choose_clock()
        begin = clock()
        vectors = self._embed(texts)
        return max(1e-9, clock() - begin), vectors


def measure(
    timers: Mapping[str, Callable[[int], VectorTimes]],
    texts: Sequence[str],
    long: Sequence[str],
    *,
    rounds: int,
    say: Callable[[str], None],
) -> list[VectorSpeed]:
    """All systems in turn, so that other jobs slow them equally: the medians of all rounds.

    One more round comes first and is not counted. The vectors of the first system are the exact ones.
    """
    times: dict[str, list[VectorTimes]] = {name: [] for name in timers}
    for number in range(1 + rounds):
        say(f"round {number} of {rounds}" if number else "loading the systems")
        for name, time_round in timers.items():
            times[name].append(time_round(number))
    exact = next(iter(times.values()))[-1].vectors
    counted = {name: each[1:] for name, each in times.items()}
    short = _compare({name: [len(texts) / each.texts for each in measured] for name, measured in counted.items()})
    joined = _compare({name: [len(long) / each.long_texts for each in measured] for name, measured in counted.items()})
    return [
        VectorSpeed(
            system=name,
            texts_per_second=short[name].per_second,
            texts_bertkit_is_faster=short[name].bertkit_is_faster,
            long_texts_per_second=joined[name].per_second,
            long_texts_bertkit_is_faster=joined[name].bertkit_is_faster,
            one_text_ms=round(1000 * statistics.median(each for round_ in measured for each in round_.single), 2),
            cosine=round(float((measured[-1].vectors * exact).sum(axis=1).min()), 6),
        )
        for name, measured in counted.items()
    ]


def _compare(speeds: Mapping[str, Sequence[float]]) -> dict[str, SystemSpeed]:
    """The systems by name: int8, whose vectors are less exact, is compared with int8 only."""
    rounded = {name: each for name, each in speeds.items() if "int8" in name}
    others = {name: each for name, each in speeds.items() if name not in rounded}
    return {each.system: each for group in (others, rounded) if group for each in compare_rounds(group)}
