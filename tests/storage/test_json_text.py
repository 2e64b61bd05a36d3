"""JSON that may come from anywhere: every fault is a ValueError."""

from __future__ import annotations

import json
import math

import pytest

from bertkit.storage.json_text import parse_json, parse_list


def test_values_are_those_of_json() -> None:
    assert parse_json('{"a": [1, 2.5, null, "b"]}') == parse_json(b'{"a": [1, 2.5, null, "b"]}')
    assert math.isnan(parse_json("[NaN]")[0])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("['a' 'b']", ["a", "b"]),
        ("['it\\'s' \"b's\"\n 'c d']", ["it's", "b's", "c d"]),
        ("['a']", ["a"]),
        ("[]", []),
    ],
)
def test_lists_are_read_as_json_python_and_numpy_print_them(text: str, values: list[str]) -> None:
    assert parse_list(text) == values


def test_texts_are_not_joined() -> None:
    with pytest.raises(ValueError):
        parse_list("['a', 'b' 'c']")


def test_a_fault_of_syntax_has_its_place() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_json('{"a":\n ?}')
    assert (caught.value.lineno, caught.value.colno) == (2, 2)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, b"\xff", "", "1" * 5000])
def test_every_fault_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_a_number_of_too_many_digits_is_explained_without_settings_of_python() -> None:
    with pytest.raises(ValueError, match=r"^a number has more than 4,300 digits: put it in quotes$"):
        parse_json("1" * 5000)


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", '{"a": Infinity}'])
def test_numbers_that_are_not_of_json_are_refused_on_request(text: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON number"):
        parse_json(text, allow_nan=False)
