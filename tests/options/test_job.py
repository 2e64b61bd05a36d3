"""What all records of options have in common."""

from __future__ import annotations

import dataclasses

import pytest

from bertkit.options.job import JobOptions, Options
from bertkit.options.verbs import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_records_are_frozen(verb: str) -> None:
    record = VERBS[verb]
    assert issubclass(record, Options)
    required = {each.name: "x" for each in dataclasses.fields(record) if each.default is dataclasses.MISSING}
    options = record(**required)
    for field in dataclasses.fields(record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(options, field.name, None)


def test_the_default_progress_depends_on_the_terminal() -> None:
    assert JobOptions().progress == "auto"
