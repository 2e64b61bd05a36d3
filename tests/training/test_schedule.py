"""Warm-up and decay at points known from the formulas."""

from __future__ import annotations

import pytest

from bertkit.errors import BertkitError
from bertkit.training.schedule import ScheduleConfig, lr_factor, whole_steps


def test_bert_decays_from_step_zero_and_drops_at_the_end_of_the_warmup() -> None:
    config = ScheduleConfig(warmup=0.1)
    assert lr_factor(config, 0, 1000) == 0
    assert lr_factor(config, 99, 1000) == pytest.approx(0.99)
    assert lr_factor(config, 100, 1000) == pytest.approx(0.9)
    assert lr_factor(config, 999, 1000) == pytest.approx(0.001)


def test_linear_decays_from_the_end_of_the_warmup() -> None:
    config = ScheduleConfig(warmup=0.1, decay="linear")
    assert lr_factor(config, 50, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 100, 1000) == 1
    assert lr_factor(config, 550, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 1000, 1000) == 0


def test_constant_does_not_decay() -> None:
    assert lr_factor(ScheduleConfig(warmup=0.0, decay="constant"), 999, 1000) == 1


def test_late_decays_in_the_last_fifth_only() -> None:
    config = ScheduleConfig(warmup=0.1, decay="late")
    assert lr_factor(config, 50, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 100, 1000) == lr_factor(config, 800, 1000) == 1
    assert lr_factor(config, 900, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 1000, 1000) == 0


def test_late_decays_from_the_end_of_a_long_warmup() -> None:
    config = ScheduleConfig(warmup=0.5, decay="late", decay_share=0.9)
    assert [lr_factor(config, done, 100) for done in (49, 50, 75, 100)] == pytest.approx([0.98, 1, 0.5, 0])
    assert lr_factor(ScheduleConfig(warmup=1.0, decay="late"), 100, 100) == 1


def test_shares_are_whole_steps() -> None:
    assert [whole_steps(share, 100) for share in (0.29, 0.57, 0.305, 0.0, 1.0)] == [29, 57, 30, 0, 100]


def test_cosine_is_half_a_wave_from_the_end_of_the_warmup() -> None:
    config = ScheduleConfig(warmup=0.1, decay="cosine")
    assert lr_factor(config, 50, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 100, 1000) == 1
    assert lr_factor(config, 325, 1000) == pytest.approx(0.5 + 0.5 * 0.5**0.5)
    assert lr_factor(config, 550, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 1000, 1000) == 0


@pytest.mark.parametrize("decay", ["bert", "linear", "cosine", "constant", "late"])
def test_a_run_of_one_step_has_a_valid_factor(decay: str) -> None:
    assert 0 <= lr_factor(ScheduleConfig(decay=decay), 0, 1) <= 1  # type: ignore[arg-type]


def test_the_share_of_the_late_decay_is_a_setting() -> None:
    config = ScheduleConfig(warmup=0.03, decay="late", decay_share=0.6)
    assert lr_factor(config, 15, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 30, 1000) == lr_factor(config, 400, 1000) == 1
    assert lr_factor(config, 700, 1000) == pytest.approx(0.5)
    assert lr_factor(config, 1000, 1000) == 0


@pytest.mark.parametrize("setting", [{"warmup": -0.1}, {"warmup": 1.1}, {"decay_share": 0.0}, {"decay_share": 1.1}])
def test_shares_out_of_range_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(BertkitError, match=next(iter(setting))):
        ScheduleConfig(**setting)  # type: ignore[arg-type]
