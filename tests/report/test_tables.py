"""Tables in Markdown and on stdout."""

from __future__ import annotations

import io

import pytest

from bertkit.report.tables import markdown_table, print_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_markdown_columns_are_aligned_and_numbers_are_on_the_right() -> None:
    table = markdown_table(["name", "n"], [["a|b", 12345], ["c\nd", 7]])
    assert table == ("| name |      n |\n| ---- | -----: |\n| a\\|b | 12,345 |\n| c d  |      7 |\n")


def test_markdown_table_without_rows_is_its_header() -> None:
    assert markdown_table(["a", "b"], []) == "| a   | b   |\n| --- | --- |\n"


def test_printed_table_is_plain_text_when_it_is_not_on_a_terminal() -> None:
    output = io.StringIO()
    print_table(("task", "f1", "run"), [("glue:mrpc", 0.5, "[a]"), ("average", 0.75, 12)], output)
    assert output.getvalue() == "task           f1  run\nglue:mrpc  0.5000  [a]\naverage    0.7500  12\n"


def test_numbers_beside_long_texts_stay_at_the_left() -> None:
    output = io.StringIO()
    print_table(("setting", "value"), [("labels", "['a', 'b', 'c', 'd']"), ("epochs", 3)], output)
    assert output.getvalue().splitlines()[-1] == "epochs   3"


def test_a_number_that_is_missing_or_undefined_is_aligned_like_the_others() -> None:
    output = io.StringIO()
    print_table(("sd", "n"), [("-", 100), (float("nan"), 2), (0.5, 30)], output)
    assert output.getvalue().splitlines() == ["       sd    n", "        -  100", "undefined    2", "   0.5000   30"]


def test_very_small_and_very_large_numbers_are_aligned_like_the_others() -> None:
    output = io.StringIO()
    print_table(("error", "n"), [(3.21e-10, 1_000), (1.5e39, 2)], output)
    assert output.getvalue().splitlines() == ["  error     n", "3.2e-10  1000", "1.5e+39     2"]


def test_printed_rows_are_one_line_each_however_long_they_are() -> None:
    output = io.StringIO()
    print_table(("id", "text"), [("1", "word " * 999), ("2", "short")], output)
    assert len(output.getvalue().splitlines()) == 3


def test_printed_table_without_rows_is_its_header() -> None:
    output = io.StringIO()
    print_table(("a", "b"), [], output)
    assert output.getvalue() == "a  b\n"


def test_printed_table_on_a_terminal_fits_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    output = Terminal()
    print_table(("id", "text"), [("1", "word " * 20)], output)
    lines = output.getvalue().splitlines()
    assert len(lines) > 3
    assert "─" in output.getvalue(), "a rule below the header"
    assert output.getvalue().count("word") == 20
