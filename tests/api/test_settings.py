"""Options become settings."""

from __future__ import annotations

from bertkit.api.settings import given_settings
from bertkit.config.settings import Setting


def test_an_option_is_the_origin_of_its_setting() -> None:
    assert given_settings(batch_size=7, **{"optimizer.lr": 0.5}) == [
        Setting("batch_size", 7, "--batch-size"),
        Setting("optimizer.lr", 0.5, "--lr"),
    ]


def test_options_that_are_not_given_are_no_settings() -> None:
    assert given_settings(steps=None, seed=0) == [Setting("seed", 0, "--seed")]
