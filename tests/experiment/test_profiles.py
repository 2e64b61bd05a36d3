"""Named settings: every path is one of a run, and what a person says outright wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.config import Setting, apply
from bertkit.encoders import bert
from bertkit.experiment.profiles import initializer_range, settings_of_profile
from bertkit.run import PretrainRun


@pytest.mark.parametrize("size", bert.SIZES)
def test_every_path_is_a_setting_of_a_run(size: str) -> None:
    encoder = bert.size(size, vocab_size=99)
    run = PretrainRun(data=Path("data"), output=Path("run"), encoder=encoder, steps=7)
    fast = settings_of_profile("fast", encoder)
    changed = apply(run, [Setting(path, value, "--profile fast") for path, value in fast.items()])
    assert changed != run
    assert changed.task.masking.rate == 0.3
    assert changed.encoder.first_positions == "sinusoids"
    assert (changed.batch_size == 64) == (size in ("tiny", "mini"))


def test_the_paper_is_the_default() -> None:
    assert settings_of_profile("paper", bert.size("base", vocab_size=99)) == {}


def test_the_first_weights_are_those_of_base_at_the_width_of_base() -> None:
    assert initializer_range(768) == 0.02
    assert initializer_range(192) == pytest.approx(0.04)
