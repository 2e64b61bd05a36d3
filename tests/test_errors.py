"""The error that is shown to the user."""

from __future__ import annotations

import pickle

import pytest

from bertkit.errors import (
    BAD_DATA,
    JOB_FAILED,
    WRONG_USAGE,
    BertkitError,
    DivergenceError,
    count_of,
    data_error,
    did_you_mean,
    list_names,
    usage_error,
    verb_of,
)


def test_a_message_is_one_line() -> None:
    assert str(BertkitError("first line\n  second\tline ")) == "first line second line"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (BertkitError("text"), JOB_FAILED),
        (DivergenceError("text"), JOB_FAILED),
        (usage_error("text"), WRONG_USAGE),
        (data_error("text"), BAD_DATA),
    ],
)
def test_every_kind_of_error_has_its_exit_code(error: BertkitError, exit_code: int) -> None:
    assert error.exit_code == exit_code


def test_an_error_passes_between_processes() -> None:
    copy = pickle.loads(pickle.dumps(data_error("damaged")))
    assert (type(copy), str(copy), copy.exit_code) == (BertkitError, "damaged", BAD_DATA)


def test_the_nearest_known_word_is_suggested() -> None:
    assert did_you_mean("lable", ["text", "label"]) == ' Did you mean "label"?'
    assert did_you_mean("LABEL", ["text", "label"]) == ' Did you mean "label"?'
    assert did_you_mean("text", ["TEXT", "Text"]) == ' Did you mean "TEXT"?'
    assert did_you_mean("xyz", ["text", "label"]) == ""
    assert did_you_mean("label", []) == ""


def test_a_long_list_of_names_is_cut() -> None:
    assert list_names(["a", "b"]) == "a, b"
    assert list_names([str(number) for number in range(1040)]).endswith(", 38, 39 and 1,000 more")


def test_a_noun_and_its_verb_agree_with_their_number() -> None:
    found = [f"{count_of(number, 'row')} {verb_of(number, 'has', 'have')}" for number in (0, 1, 2, 1040)]
    assert found == ["0 rows have", "1 row has", "2 rows have", "1,040 rows have"]
