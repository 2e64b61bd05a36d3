from __future__ import annotations

import pytest

from bertkit.errors import BertkitError
from bertkit.options.benchmarks import BenchInferenceOptions


def test_no_peer_is_measured_unless_asked_for() -> None:
    assert BenchInferenceOptions("model", "texts.txt").against == ()


def test_a_round_at_least_is_measured() -> None:
    with pytest.raises(BertkitError, match="rounds is 0"):
        BenchInferenceOptions("model", "texts.txt", rounds=0)
