from __future__ import annotations

import pytest

from bertkit.report.tables import markdown_table, summarise


def test_the_standard_deviation_is_that_of_a_sample() -> None:
    summary = summarise([0.7, 0.8, 0.9])
    assert summary.mean == pytest.approx(0.8)
    assert summary.sd == pytest.approx(0.1)
    assert (summary.best, summary.count) == (0.9, 3)
    assert str(summary) == "0.8000 ± 0.1000 (best 0.9000 of 3)"


def test_one_score_has_no_deviation() -> None:
    assert summarise([0.5]).sd is None
    assert str(summarise([0.5])) == "0.5000"


def test_a_table_is_aligned_and_numbers_stand_right() -> None:
    table = markdown_table(["name", "n"], [["a|b", 12345], ["c\nd", 7]])
    assert table == ("| name |      n |\n| ---- | -----: |\n| a\\|b | 12,345 |\n| c d  |      7 |\n")


def test_a_table_without_rows_is_its_header() -> None:
    assert markdown_table(["a", "b"], []) == "| a   | b   |\n| --- | --- |\n"
