"""Descriptions are read from the source of the records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from bertkit.options.description import describe, format_type, list_options, summarize
from bertkit.options.job import JobOptions
from bertkit.options.verbs import VERBS


@dataclass(frozen=True, kw_only=True)
class PressOptions(JobOptions):
    """Press flowers.

    Between the pages
    of a book.
    """

    days: int = 7
    """For how long, over
    more than one line."""
    flower: str = field(kw_only=False)
    """Which flower."""
    book: str
    """In which book."""


@dataclass(frozen=True, kw_only=True)
class DryOptions(PressOptions):
    """Dry flowers."""

    days: int = 30
    """Until they are dry."""


def test_options_are_listed_with_arguments_first_and_progress_last() -> None:
    options = list_options(PressOptions)
    assert [option.name for option in options] == ["flower", "days", "book", "progress"]
    assert [option.positional for option in options] == [True, False, False, False]
    assert [option.required for option in options] == [True, False, True, False]


def test_the_text_under_a_field_is_its_help_on_one_line() -> None:
    help = {option.name: option.help for option in list_options(PressOptions)}
    assert help["days"] == "For how long, over more than one line."
    assert help["progress"].startswith("What is shown on stderr")


def test_a_subclass_inherits_options_and_may_describe_them_again() -> None:
    options = {option.name: option for option in list_options(DryOptions)}
    assert (options["days"].default, options["days"].help) == (30, "Until they are dry.")
    assert options["book"].help == "In which book."


def test_the_docstring_describes_the_verb() -> None:
    assert summarize(PressOptions) == "Press flowers."
    assert describe(PressOptions) == "Press flowers.\n\nBetween the pages\nof a book."


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (Path | str | None, "Path | str | None"),
        (Sequence[Path | str], "Sequence[Path | str]"),
        (Literal["a", "b"] | None, "'a' | 'b' | None"),
        (Sequence[str] | Mapping[str, Sequence[object]], "Sequence[str] | Mapping[str, Sequence[object]]"),
    ],
)
def test_types_are_formatted_without_modules(hint: object, text: str) -> None:
    assert format_type(hint) == text


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_every_option_is_described(verb: str) -> None:
    summary = summarize(VERBS[verb])
    assert summary[0].isupper()
    assert summary.endswith(".")
    for option in list_options(VERBS[verb]):
        assert option.help[:1] in ("-", ".", '"') or option.help[:1].isalnum(), option.name
        assert option.help.endswith((".", "]")), option.name
        assert option.default is not dataclasses.MISSING or option.required
