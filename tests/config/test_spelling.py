from __future__ import annotations

import pytest
from tests.config.jobs import JOB

from bertkit.config.settings import apply, parse_settings
from bertkit.errors import BertkitError


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("learning_rate=1", "optimizer.lr"),
        ("network.learning_rate=1", "optimizer.lr"),
        ("warmup_steps=1", "optimizer.warmup"),
    ],
)
def test_the_name_that_other_libraries_have_for_a_setting_is_understood(typed: str, near: str) -> None:
    with pytest.raises(BertkitError, match=rf"unknown key .* Did you mean {near}\?$"):
        apply(JOB, parse_settings([typed]))
