"""Estimates of the cost of pre-trainings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertkit.reproduction.estimate import (
    PretrainingEstimate,
    ReproductionEstimate,
    estimate_pretrainings,
    estimate_run,
    measure_speed,
)
from bertkit.reproduction.pretrainings import list_pretrainings
from bertkit.reproduction.scales import SMOKE

NETWORKS = list_pretrainings(SMOKE)
BERT = NETWORKS["bert-base"]


def test_cost_is_proportional_to_steps_and_rows() -> None:
    run = BERT.sketch()
    once, twice = estimate_run("a", run), estimate_run("a", replace(run, steps=40, batch_size=64))
    assert (once.steps, twice.steps) == (20, 40)
    assert twice.flop == 4 * once.flop
    assert twice.parameters == once.parameters


def test_long_rows_cost_more() -> None:
    run = replace(BERT.sketch(), long_seq_length=64, long_share=0.5)
    assert estimate_run("a", run).flop > estimate_run("a", BERT.sketch()).flop * 1.4


def test_the_first_steps_cost_less_than_their_share_where_the_last_rows_are_longer() -> None:
    run = replace(BERT.sketch(), steps=20, seq_length=64, long_seq_length=128, long_share=0.5)
    whole, half, most = (estimate_run("a", run, share=share) for share in (1, 0.5, 0.75))
    assert (whole.steps, half.steps, most.steps) == (20, 10, 15)
    assert whole.flop == estimate_run("a", run).flop
    assert half.flop < whole.flop / 3
    assert whole.flop - most.flop == pytest.approx(most.flop - half.flop)


def test_equal_flop_changes_the_number_of_steps() -> None:
    pretrainings = [BERT, replace(NETWORKS["elmo"], match="flop")]
    bert, elmo = estimate_pretrainings(pretrainings, BERT)
    assert elmo.name == "elmo=flop"
    assert elmo.steps != bert.steps
    assert elmo.flop == pytest.approx(bert.flop, rel=0.6 / elmo.steps)


def test_equal_parameters_change_the_size() -> None:
    plain, matched = estimate_pretrainings([NETWORKS["elmo"], replace(NETWORKS["elmo"], match="parameters")], BERT)
    assert plain.parameters != matched.parameters
    assert plain.steps == matched.steps


def test_lines_show_every_pretraining_and_the_total() -> None:
    one = PretrainingEstimate(name="gpt", parameters=1_230_000, steps=1000, flop=4e12)
    two = PretrainingEstimate(name="elmo", parameters=2_000_000, steps=1000, flop=6e12)
    lines = ReproductionEstimate(pretrainings=[one, two], finetunings=1234, speed=1e11).lines()
    assert "gpt" in lines[2] and "1.23 M" in lines[2] and "40 s" in lines[2]
    assert "1.0e+13 FLOP: about 100 s" in lines[-2].replace("2 min", "100 s")
    assert "1,234 trainings" in lines[-1]


def test_speed_is_measured() -> None:
    assert measure_speed() > 1e8
