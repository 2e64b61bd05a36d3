"""Records of JSON files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.formats.json_records import json_records, refuse_nested_rows

PATH = Path("t.json")


def test_a_list_an_object_and_lines_give_records() -> None:
    assert list(json_records(PATH, ["[{\n", '"a": 1}, {}]'], whole=True)) == [(1, {"a": 1}), (2, {})]
    assert list(json_records(PATH, ['{"a": 1}'], whole=True)) == [(1, {"a": 1})]
    assert list(json_records(PATH, ['{"a": 1}\n', "\n", "{}\n"], whole=False)) == [(1, {"a": 1}), (3, {})]


def test_an_object_over_several_lines_is_no_line() -> None:
    with pytest.raises(BertkitError, match=r"t.json has an object over several lines. Write one object per line"):
        list(json_records(PATH, ["{\n", '"a": 1}\n'], whole=False))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": {"b": 1, "c": 2, "b": 3}}', 't.json, line 1: more than one field "b". Rename all but one.'),
        (f'{{"a": {"1" * 5000}}}', "t.json, line 1: not JSON (a number has more than 4,300 digits: put it in quotes)."),
    ],
    ids=["repeated", "long"],
)
def test_a_line_that_would_lose_something_is_refused(line: str, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        list(json_records(PATH, [line], whole=False))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"version": "1", "data": [{"text": "a"}, {"text": "b"}]}, 'whose "data" may be the table'),
        ({"text": {"0": "a"}, "label": {"0": "b"}}, "to_json.orient="),
    ],
)
def test_an_object_that_holds_the_rows_is_named(record: dict[str, object], message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        refuse_nested_rows(PATH, record)
    assert caught.value.exit_code == BAD_DATA


def test_a_row_may_have_lists_and_objects() -> None:
    refuse_nested_rows(PATH, {"text": "a", "labels": ["x"], "more": {"y": 1}, "one": [{"z": 2}]})
    refuse_nested_rows(PATH, {})
