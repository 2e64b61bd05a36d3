from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest

from bertkit.speed.inference import VectorTimer, VectorTimes, compare_systems, join_texts, measure
from bertkit.speed.inference_systems import EmbedMaker


def test_long_texts_use_every_text_once() -> None:
    texts = [f"t{number}" for number in range(50)]
    joined = join_texts(texts)
    assert " ".join(joined).split() == texts
    assert [len(each.split()) for each in joined] == [1, 8, 15, 6, 13, 4, 3]


def maker(angle: float) -> EmbedMaker:
    """A system whose last vector has this angle to the others."""
    return lambda: lambda texts: np.array([[2.0, 0.0]] * (len(texts) - 1) + [[np.cos(angle), np.sin(angle)]])


def test_speeds_are_those_of_the_clock_and_cosines_of_the_worst_text(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0.0, 0.5)
    monkeypatch.setattr("bertkit.speed.inference.choose_clock", lambda: lambda: next(clock))
    texts, long, said = ["a", "b", "c"], ["d"], list[str]()
    timers = {name: VectorTimer(maker(angle), texts, long) for name, angle in {"bertkit": 0.0, "other": 0.3}.items()}
    found = measure(timers, texts, long, rounds=2, say=said.append)
    assert [each.system for each in found] == ["bertkit", "other"]
    assert found[0].texts_per_second == pytest.approx(6.0)
    assert found[0].long_texts_per_second == pytest.approx(2.0)
    assert found[0].one_text_ms == pytest.approx(500.0)
    assert [each.cosine for each in found] == [1.0, pytest.approx(np.cos(0.3), abs=1e-5)]
    assert said == ["loading the systems", "round 1 of 2", "round 2 of 2"]


def test_the_first_round_is_not_counted() -> None:
    slow_at_first = [VectorTimes(seconds, seconds, [seconds], np.eye(2)) for seconds in (9.0, 2.0, 1.0)]
    (found,) = measure(
        {"bertkit": lambda number: slow_at_first[number]}, ["a", "b"], ["c"], rounds=2, say=lambda line: None
    )
    assert (found.texts_per_second, found.long_texts_per_second, found.one_text_ms) == (1.5, 0.75, 1500.0)


def test_ratios_are_those_of_each_round_and_int8_is_compared_with_int8() -> None:
    seconds = {
        "bertkit float32": (9.0, 2.0, 2.0, 4.0),
        "bertkit int8": (9.0, 0.5, 1.0, 1.0),
        "other float32": (9.0, 3.0, 6.0, 6.0),
        "other int8": (9.0, 1.0, 8.0, 4.0),
    }
    timers = {
        name: lambda number, each=each: VectorTimes(each[number], 2 * each[number], [1.0], np.eye(2))
        for name, each in seconds.items()
    }
    found = measure(timers, ["a", "b"], ["c"], rounds=3, say=lambda line: None)
    assert [each.texts_per_second for each in found] == [1.0, 2.0, pytest.approx(1 / 3, abs=0.01), 0.5]
    assert [each.texts_bertkit_is_faster for each in found] == [1.0, 1.0, 1.5, 4.0]
    assert [each.long_texts_bertkit_is_faster for each in found] == [1.0, 1.0, 1.5, 4.0]


@pytest.mark.usefixtures("fast_bfloat16")
def test_systems_are_measured_in_processes_of_their_own(minilm: Path) -> None:
    found = compare_systems(minilm, ["one text", "another"], [], rounds=1, say=lambda line: None)
    assert [each.system for each in found.systems] == ["bertkit float32", "bertkit bfloat16", "bertkit int8"]
    assert all(each.cosine > 0.9 and each.one_text_ms > 0 for each in found.systems)
