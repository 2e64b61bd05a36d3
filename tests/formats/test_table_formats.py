"""How the format of a table is guessed: its delimiter, its quotes, its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.tables import Table
from bertkit.inference.text_column import open_text_column


def read(path: Path, data: bytes) -> list[tuple[str, ...]]:
    path.write_bytes(data)
    table = Table(path)
    return [tuple(row.cells) for row in table.rows(*table.columns)]


def test_quotes_anywhere_in_a_tab_separated_file_are_those_of_a_spreadsheet(tmp_path: Path) -> None:
    lines = [f"{row}\tsome text\n" for row in range(1500)]
    lines[1200] = '1200\t"say ""hi"" now"\n'
    rows = read(tmp_path / "t.tsv", ("id\ttext\n" + "".join(lines)).encode())
    assert rows[1200] == ("1200", 'say "hi" now')


def test_a_stray_quote_does_not_swallow_the_lines_up_to_the_next(tmp_path: Path) -> None:
    lines = [f"{row}\tsome text\n" for row in range(1500)]
    lines[5], lines[1200], lines[1400] = '5\t"great"\n', '1200\t"I loved it\n', '1400\tas she said"\n'
    rows = read(tmp_path / "t.tsv", ("id\ttext\n" + "".join(lines)).encode())
    assert len(rows) == 1500
    assert rows[1200] == ("1200", '"I loved it')


def test_quotes_of_a_tab_separated_file_are_characters(tmp_path: Path) -> None:
    rows = read(tmp_path / "t.tsv", b'text\tlabel\n" Open and never closed .\ta\n"Closed."\tb\n')
    assert rows == [('" Open and never closed .', "a"), ('"Closed."', "b")]


def test_quoted_cells_of_a_spreadsheet_are_unquoted(tmp_path: Path) -> None:
    rows = read(tmp_path / "t.tsv", b'text\tlabel\n"He said ""no"""\ta\n"two\nlines"\tb\n')
    assert rows == [('He said "no"', "a"), ("two\nlines", "b")]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(mark: str, tmp_path: Path) -> None:
    other = "," if mark == ";" else ";"
    path = tmp_path / "t.csv"
    path.write_text(f"id{mark}text{mark}label\n1{mark}a{other} b{mark}x\n", encoding="utf-8")
    assert Table(path).form.delimiter == mark


def test_lines_of_an_old_macintosh_are_not_one_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"the river\rthe mill\r")
    with pytest.raises(BertkitError, match=r"one line with carriage returns in it.*tr '\\r' '\\n'"):
        list(open_text_column(path).texts())
    path.write_bytes(b"the river\r\nthe mill\r and more\n")
    assert list(open_text_column(path).texts()) == ["the river", "the mill\r and more"]
