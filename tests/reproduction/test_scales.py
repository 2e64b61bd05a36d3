"""Scales: sizes of BERT, and fields that are out of range."""

from __future__ import annotations

import pytest

from bertkit.config.settings import apply, parse_settings
from bertkit.errors import BertkitError
from bertkit.reproduction.scales import PAPER, SCALES, SMOKE


def test_scales_are_found_by_their_names() -> None:
    assert list(SCALES) == ["smoke", "tiny", "paper"]
    assert all(scale.name == name for name, scale in SCALES.items())


def test_base_and_large_of_the_paper() -> None:
    assert (PAPER.base, PAPER.large) == ("12/768/12", "24/1024/16")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("stesp=3", "unknown key stesp. Did you mean steps"),
        ("steps=0", "steps is 0; it must be from 1 to"),
        ("limit=many", "limit is many; expected a whole number"),
        ("limit=0", "--set: limit is 0; it must be from 1 to"),
        ("vocab_size=3", "vocab_size is 3; it must be from 261 to"),
        ("heldout=2", "heldout is 2.0; it must be above 0 and below 1"),
        ("long_seq_length=64", "long_seq_length is the length of the last long_share of the steps: set both"),
        ("seq_length=0", "seq_length is 0; it must be from 8 to 512"),
        ("long_seq_length=513", "long_seq_length is 513; it must be from 8 to 512"),
        ("long_share=1", "long_share is 1.0; it must be at least 0 and below 1"),
        ("baseline_share=0", "baseline_share is 0.0; it must be above 0"),
        ("steps=1", "snapshots is 2; it must be at most steps, which is 1"),
        ("learning_rates=[]", "learning_rates is empty; give at least one"),
        ("learning_rates=1e-3", "expected a list in brackets, each item a number"),
        ("sizes=1/32/2", "expected a list of 6 in brackets, each item text"),
    ],
)
def test_invalid_fields_are_rejected(setting: str, message: str) -> None:
    with pytest.raises(BertkitError) as error:
        apply(SMOKE, parse_settings([setting]))
    assert message in str(error.value)
