from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest

from bertkit.speed.inference import join_texts, measure


def test_long_texts_use_every_text_once() -> None:
    texts = [f"t{number}" for number in range(50)]
    joined = join_texts(texts)
    assert " ".join(joined).split() == texts
    assert [len(each.split()) for each in joined] == [1, 8, 15, 6, 13, 4, 3]


def test_speeds_are_those_of_the_best_round_and_cosines_of_the_worst_text() -> None:
    calls: list[str] = []

    def embed(name: str, angle: float) -> Any:
        def run(texts: Sequence[str]) -> Any:
            calls.append(name)
            return np.array([[2.0, 0.0]] * (len(texts) - 1) + [[np.cos(angle), np.sin(angle)]])

        return run

    clock = count(0.0, 0.5)
    systems = {"one": embed("one", 0.0), "other": embed("other", 0.3)}
    found = measure(systems, ["a", "b", "c"], ["d"], rounds=2, clock=lambda: next(clock))
    assert [each.system for each in found] == ["one", "other"]
    assert found[0].texts_per_second == pytest.approx(6.0)
    assert found[0].long_texts_per_second == pytest.approx(2.0)
    assert found[0].one_text_ms == pytest.approx(500.0)
    assert [each.cosine for each in found] == [1.0, pytest.approx(np.cos(0.3), abs=1e-5)]
    assert calls[:10] == ["one"] * 5 + ["other"] * 5
