"""What all records of options have in common."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args, get_origin

import pytest

from bertkit.options.description import list_options
from bertkit.options.job import JobOptions, Options
from bertkit.options.verbs import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_records_are_frozen(verb: str) -> None:
    record = VERBS[verb]
    assert issubclass(record, Options)
    needed = [option for option in list_options(record) if option.required]
    required = {each.name: get_args(each.type)[0] if get_origin(each.type) is Literal else "x" for each in needed}
    options = record(**required)
    for field in dataclasses.fields(record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(options, field.name, None)


def test_the_default_progress_depends_on_the_terminal() -> None:
    assert JobOptions().progress == "auto"
