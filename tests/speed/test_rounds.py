from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from functools import partial

import pytest
import torch

from bertkit.errors import BertkitError, usage_error
from bertkit.speed.rounds import StepTimer, add_peers, choose_clock, compare, time_steps


def _sleep(seconds: float, units: int) -> Iterator[int]:
    while True:
        time.sleep(seconds)
        yield units


def _process_id() -> Iterator[int]:
    """Steps whose number of units is the process id, then, in the second measured step, nothing."""
    yield from itertools.repeat(os.getpid())


def _die() -> Iterator[int]:
    os._exit(3)


def _count() -> Iterator[int]:
    yield from itertools.count()


def test_the_speed_is_the_units_of_all_steps_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.speed.rounds.choose_clock", lambda: time.perf_counter)
    speed = StepTimer(partial(_sleep, 0.01, 7))(0.2)
    assert 200 < speed <= 700


def test_steps_of_the_warm_up_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 1.0)
    monkeypatch.setattr("bertkit.speed.rounds.choose_clock", lambda: lambda: next(clock))
    timer = StepTimer(_count)
    assert [timer(0), timer(0)] == [3, 4]  # one step each, of one second, after 0, 1 and 2


def test_the_clock_of_one_thread_is_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert choose_clock() is time.process_time
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert choose_clock() is time.perf_counter


def test_every_system_has_a_process_and_takes_part_in_every_round() -> None:
    said: list[str] = []
    speeds = time_steps({"bertkit": _process_id, "other": _process_id}, rounds=2, seconds=0, say=said.append)
    assert [len(each) for each in speeds.values()] == [2, 2]
    assert said == ["round 1 of 2", "round 2 of 2"]


def test_a_system_that_dies_is_named_in_one_line() -> None:
    with pytest.raises(BertkitError, match=r"^bertkit float32 ended with exit code 3 and no speed"):
        time_steps({"bertkit float32": _die}, rounds=1, seconds=0, say=lambda _: None)


def test_ratios_are_medians_over_rounds_to_the_fastest_of_bertkit() -> None:
    speeds = {"bertkit a": [1.0, 1.0, 9.0], "bertkit b": [6.0, 2.0, 4.0], "other": [3.0, 2.0, 1.0]}
    systems = compare(speeds, work="w", unit="tokens", clock="wall time", left_out={}).systems
    found = {each.system: (each.per_second, each.bertkit_is_faster) for each in systems}
    assert found == {"bertkit a": (1.0, 2.0), "bertkit b": (4.0, 1.0), "other": (2.0, 2.0)}


def test_the_comparison_names_the_chip_and_counts_rounds() -> None:
    found = compare({"bertkit": [1.0, 2.0]}, work="w", unit="tokens", clock="wall time", left_out={"hf": "no"})
    assert (found.rounds, found.threads, found.unit) == (2, torch.get_num_threads(), "tokens")
    assert found.processor
    assert found.left_out == {"hf": "no"}


def test_a_peer_that_cannot_run_is_left_out_with_the_reason() -> None:
    def find(peer: str) -> Iterator[tuple[str, int]]:
        if peer == "absent":
            raise usage_error("absent is absent.")
        yield peer.upper(), 2

    said: list[str] = []
    systems, left_out = add_peers({"bertkit": 1}, ["absent", "here"], find, said.append)
    assert (systems, left_out) == ({"bertkit": 1, "HERE": 2}, {"absent": "absent is absent."})
    assert said == ["left out: absent is absent."]
