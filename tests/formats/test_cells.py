"""Values of tables as cells of text and as JSON."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from bertkit.formats.cells import Structure, spell_cell, to_json


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (float("nan"), ""),
        (True, "true"),
        (1.5, "1.5"),
        (b"mill", "mill"),
        (date(2018, 10, 11), "2018-10-11"),
    ],
)
def test_a_cell_is_what_a_csv_file_would_have(value: object, cell: str) -> None:
    assert spell_cell(value) == cell
    assert not isinstance(spell_cell(value), Structure)


def test_lists_and_objects_are_marked() -> None:
    assert isinstance(spell_cell(["a", 1]), Structure)
    assert spell_cell({"a": "\u00e9"}) == '{"a": "\u00e9"}'


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("nan"), None),
        (np.array([1, 2]), [1, 2]),
        ({1: (True, None)}, {"1": [True, None]}),
        ({"long", "dull", "funny"}, ["dull", "funny", "long"]),
        (float("inf"), "Infinity"),
        (b"\xff", "\\xff"),
        ("half \ud83d", "half ?"),
    ],
)
def test_json_can_have_every_value(value: object, plain: object) -> None:
    assert to_json(value) == plain
