"""Suffixes: of a compressed file, in any case, and which are tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.storage.suffixes import COMPRESSIONS, JSON_LINES, TABLES, TAG_COLUMNS, suffix_of


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.txt", ".txt"),
        ("a.TXT.GZ", ".txt"),
        ("a.jsonl.zst", ".jsonl"),
        ("a.gz", ""),
        ("a", ""),
        ("a.b.c", ".c"),
        (".gz", ""),
    ],
)
def test_the_suffix_is_that_of_the_content(name: str, suffix: str) -> None:
    assert suffix_of(Path(name)) == suffix


def test_every_kind_of_table_is_listed_once() -> None:
    assert {*JSON_LINES, *TAG_COLUMNS} < set(TABLES)
    assert len(set(TABLES)) == len(TABLES)
    assert not set(TABLES).intersection(COMPRESSIONS)
