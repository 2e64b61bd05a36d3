from __future__ import annotations

import pytest

from bertkit.errors import BertkitError
from bertkit.options.speed import BenchFinetuneOptions, BenchInferenceOptions, BenchPrepareOptions, BenchPretrainOptions


def test_no_peer_is_measured_unless_asked_for() -> None:
    assert BenchInferenceOptions("model", "texts.txt").against == ()
    assert BenchPretrainOptions().against == ()
    assert BenchFinetuneOptions("glue:sst2", model="model").against == ()
    assert BenchPrepareOptions(["texts.txt"], tokenizer="tok").against == ()


def test_a_round_at_least_is_measured() -> None:
    with pytest.raises(BertkitError, match="rounds is 0"):
        BenchInferenceOptions("model", "texts.txt", rounds=0)
    with pytest.raises(BertkitError, match="seq_length is 2"):
        BenchPretrainOptions(seq_length=2)
