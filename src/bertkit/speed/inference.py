"""The speed of inference: systems that make vectors of texts, measured in turn in one process."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.options.speed import InferencePeer
from bertkit.speed.inference_systems import Embed, own_systems, peer_systems
from bertkit.speed.rounds import add_peers, choose_clock, clock_name
from bertkit.training.processor import processor_name

_LONGEST_JOIN = 16
_SINGLE_TEXTS = 30


@dataclass(frozen=True, slots=True)
class VectorSpeed:
    """The speed of one system: texts per second in batches, the time of one text alone, and its smallest cosine.

    The cosine is that to bertkit's vectors in float32.
    """

    system: str
    texts_per_second: float
    long_texts_per_second: float
    one_text_ms: float
    cosine: float


@dataclass(frozen=True, slots=True)
class InferenceSpeed:
    """The result of ``bench inference``; ``left_out`` has the reason for each peer that did not run."""

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
    with tempfile.TemporaryDirectory() as temporary:
        own = dict(own_systems(folder))
        systems, left_out = add_peers(own, peers, lambda peer: peer_systems(peer, folder, Path(temporary)), say)
        long = join_texts(texts)
        measured = measure(systems, texts, long, rounds=rounds, clock=choose_clock())
    return InferenceSpeed(
        processor=processor_name(),
        threads=torch.get_num_threads(),
        texts=len(texts),
        long_texts=len(long),
        clock=clock_name(),
        systems=tuple(measured),
        left_out=left_out,
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


def measure(
    systems: Mapping[str, Embed],
    texts: Sequence[str],
    long: Sequence[str],
    *,
    rounds: int,
    clock: Callable[[], float],
) -> list[VectorSpeed]:
    """All systems in turn, so that other jobs slow them equally: the best round of batches, the median of single texts.

    One more round comes first and is not counted.
    """
    seconds: dict[str, tuple[list[float], list[float], list[float]]] = {name: ([], [], []) for name in systems}
    vectors: dict[str, Any] = {}
    for number in range(1 + rounds):
        for name, embed in systems.items():
            jobs = [(0, texts), (1, long), *((2, [text]) for text in texts[:: max(1, len(texts) // _SINGLE_TEXTS)])]
            for kind, job in jobs:
                begin = clock()
                found = embed(job)
                if number:
                    seconds[name][kind].append(clock() - begin)
                if kind == 0:
                    vectors[name] = found / np.linalg.norm(found, axis=1, keepdims=True)
    exact = next(iter(vectors.values()))
    return [
        VectorSpeed(
            system=name,
            texts_per_second=round(len(texts) / max(1e-9, min(short_times)), 1),
            long_texts_per_second=round(len(long) / max(1e-9, min(long_times)), 1),
            one_text_ms=round(1000 * statistics.median(single_times), 2),
            cosine=round(float((vectors[name] * exact).sum(axis=1).min()), 6),
        )
        for name, (short_times, long_times, single_times) in seconds.items()
    ]
