from __future__ import annotations

from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.objective_settings import Masking, ObjectiveSettings


def test_the_defaults_are_the_papers() -> None:
    masking = ObjectiveSettings().masking
    assert (masking.rate, masking.mask, masking.random, masking.keep) == (0.15, 0.8, 0.1, 0.1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rate": 1.5}, "rate is 1.5; it must be above 0 and at most 1"),
        ({"final_rate": -0.1}, "final_rate is -0.1; it must be above 0 and at most 1"),
        ({"mask": 0.9}, "must add up to 1"),
        ({"keep": -0.1, "random": 0.3}, "keep is -0.1; it must be from 0 to 1"),
        ({"max_predictions": 0}, "max_predictions is 0"),
    ],
)
def test_impossible_masking_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        Masking(**fields)


def test_the_rate_changes_linearly_to_the_final_rate() -> None:
    masking = Masking(rate=0.3, final_rate=0.15, whole_word=True)
    rates = [masking.at(progress).rate for progress in (0, 0.5, 1)]
    assert rates == pytest.approx([0.3, 0.225, 0.15])
    assert masking.at(0.5) == Masking(rate=masking.at(0.5).rate, whole_word=True)
    constant = Masking(rate=0.3)
    assert constant.at(0.5) is constant
