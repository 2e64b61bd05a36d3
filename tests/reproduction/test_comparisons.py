"""Differences of two systems and their intervals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bertkit.evaluation.report import ScoreInterval
from bertkit.reproduction.comparisons import find_difference, read_example_interval
from bertkit.storage.atomic import write_json

EXAMPLES = ScoreInterval(value=0.03, low=0.01, high=0.05)
NO_CHANCE = ScoreInterval(value=0.0, low=0.0, high=0.0)


def test_without_chance_over_examples_the_interval_is_that_of_a_paired_t_test() -> None:
    better, worse = [61.0, 58.0, 66.0], [60.0, 59.0, 60.0]
    found = find_difference("QNLI", better, worse, NO_CHANCE)
    assert found is not None
    expected = stats.ttest_rel(better, worse).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.better, found.worse) == pytest.approx((61.6667, 59.6667), abs=1e-4)


def test_both_sources_of_chance_widen_the_interval() -> None:
    found = find_difference("QNLI", [62.0, 63.0, 64.0], [60.0, 60.0, 60.0], EXAMPLES)
    assert found is not None
    by_seed = stats.t.ppf(0.975, 2) * 1.0 / math.sqrt(3)
    assert found.high - 3.0 == pytest.approx(math.hypot(by_seed, 2.0))
    assert 3.0 - found.low == pytest.approx(math.hypot(by_seed, 2.0))


@pytest.mark.parametrize(
    ("better", "worse", "examples"),
    [
        ([60.0], [50.0], EXAMPLES),
        ([60.0, 61.0], [50.0], EXAMPLES),
        ([], [], EXAMPLES),
        ([60.0, 61.0], [50.0, 51.0], None),
        ([60.0, 61.0], [50.0, 51.0], ScoreInterval(value=math.nan, low=math.nan, high=math.nan)),
    ],
)
def test_nothing_is_said_without_seeds_and_examples(
    better: list[float], worse: list[float], examples: ScoreInterval | None
) -> None:
    assert find_difference("QNLI", better, worse, examples) is None


def test_intervals_are_read_by_score(tmp_path: Path) -> None:
    file = tmp_path / "a--b.json"
    assert read_example_interval(file, "f1") is None
    write_json(file, {"f1": {"value": 0.03, "low": 0.01, "high": 0.05}})
    assert read_example_interval(file, "f1") == EXAMPLES
    assert read_example_interval(file, "accuracy") is None


def test_of_several_columns_each_needs_a_wider_interval() -> None:
    """Half the interval over seeds is 0.4 at 95 % and 0.9 at 99 %, half of that over examples 2.0 and 2.6."""
    better, worse = [63.0, 63.1, 63.3], [60.0, 60.0, 60.0]
    one, of_five = (find_difference("QNLI", better, worse, EXAMPLES, num_columns=count) for count in (1, 5))
    assert one is not None
    assert of_five is not None
    assert (one.low, one.high) == (of_five.low, of_five.high)
    assert one.certain
    assert of_five.certain
    worse = [60.6, 60.6, 60.6]
    one, of_five = (find_difference("QNLI", better, worse, EXAMPLES, num_columns=count) for count in (1, 5))
    assert one is not None
    assert of_five is not None
    assert one.low > 0
    assert one.certain
    assert not of_five.certain


def test_without_a_difference_one_claim_in_twenty_is_decided() -> None:
    """Nine columns of two equal systems, whose seeds differ by chance; by 95 % intervals it would be a third."""
    rng = np.random.default_rng(0)
    scores = 60 + rng.normal(size=(400, 9, 2, 3))
    decided = 0
    for claim in scores:
        found = [find_difference("QNLI", one, other, NO_CHANCE, num_columns=9) for one, other in claim.tolist()]
        decided += any(each is not None and each.certain for each in found)
    assert 0.01 < decided / len(scores) < 0.09
