"""Excel workbooks as tables."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.splits import find_splits
from bertkit.formats.table_formats import Row
from bertkit.formats.tables import Table

openpyxl: Any = pytest.importorskip("openpyxl")

ROWS: list[list[object]] = [
    ["text", "label", "stars"],
    ['good, "very" good;\nreally', "pos", 5],
    ["=1+1 Grüße 🙂", "neg", 2.5],
]


def save(path: Path, *sheets: Sequence[Sequence[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append([f"'{cell}" if str(cell).startswith("=") else cell for cell in row])
    book.save(path)
    return path


def test_rows_of_a_workbook_are_those_of_its_cells(tmp_path: Path) -> None:
    table = Table(save(tmp_path / "t.xlsx", ROWS, []))
    assert table.columns == ("text", "label", "stars")
    assert list(table.rows("label", "text")) == [Row(2, ["pos", str(ROWS[1][0])]), Row(3, ["neg", "'=1+1 Grüße 🙂"])]
    assert list(table.rows("stars")) == [Row(2, ["5"]), Row(3, ["2.5"])]


def test_values_become_what_a_spreadsheet_writes_into_csv(tmp_path: Path) -> None:
    day = datetime.datetime(2026, 1, 31, 12, 30)
    table = Table(
        save(tmp_path / "t.xlsx", [["a", "b", "c", "d"], [True, 3.0, None, day], [], ["x", None, None, day.date()]])
    )
    assert list(table.rows("a", "b", "c", "d")) == [
        Row(2, ["TRUE", "3", "", "2026-01-31 12:30:00"]),
        Row(4, ["x", "", "", "2026-01-31"]),
    ]


@pytest.mark.parametrize("size", ["A1", "A1:B2", "A1:A3", "A1:ZZ9999"])
def test_a_wrong_size_in_the_file_loses_no_cells(tmp_path: Path, size: str) -> None:
    path = save(tmp_path / "t.xlsx", ROWS)
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    wrong = re.sub(rb'<dimension ref="[^"]*"', f'<dimension ref="{size}"'.encode(), content[sheet])
    assert wrong != content[sheet]
    with zipfile.ZipFile(path, "w") as parts:
        for name, data in {**content, sheet: wrong}.items():
            parts.writestr(name, data)
    table = Table(path)
    assert table.columns == ("text", "label", "stars")
    assert [row.cells[1] for row in table.rows("text", "label")] == ["pos", "neg"]


def test_an_escaped_carriage_return_is_read_as_one(tmp_path: Path) -> None:
    table = Table(save(tmp_path / "t.xlsx", [["text", "label"], ["two_x000D_\nlines", "a"]]))
    assert next(iter(table.rows("text"))).cells == ["two\r\nlines"]


def test_rows_without_names_of_columns_are_numbered(tmp_path: Path) -> None:
    assert Table(save(tmp_path / "t.xlsx", [["good", 1], ["bad", 0]])).columns == ("1", "2")


def test_a_hidden_sheet_is_not_read(tmp_path: Path) -> None:
    path = save(tmp_path / "t.xlsx", [["lists"], ["x"]], ROWS)
    book = openpyxl.load_workbook(path)
    book.worksheets[0].sheet_state = "hidden"
    book.save(path)
    assert Table(path).columns == ("text", "label", "stars")


def test_a_folder_of_workbooks_has_splits(tmp_path: Path) -> None:
    train = save(tmp_path / "train.xlsx", ROWS)
    assert find_splits(tmp_path) == {"train": [train]}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2000])


def change_compression(path: Path) -> None:
    """The files in the archive seem to be compressed in a way that zipfile does not know."""
    content = path.read_bytes()
    for start, place in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        content = re.sub(
            re.escape(start) + b"(.{%d}).." % (place - 4), start + rb"\1" + b"c\0", content, flags=re.DOTALL
        )
    path.write_bytes(content)


def inflate(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/workbook.xml", b"0" * 40_000_000)


def replace_sheet(path: Path) -> None:
    """Another file in place of the sheet, such as an XML file that was cut."""
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    content["xl/worksheets/sheet1.xml"] = content["xl/worksheets/sheet1.xml"][:300]
    with zipfile.ZipFile(path, "w") as parts:
        for name, data in content.items():
            parts.writestr(name, data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "t.xlsx is not a readable workbook .*It may be cut off. Save it again, or as CSV in UTF-8"),
        (
            lambda path: path.write_bytes(b"text,label\n"),
            r"t.xlsx is no workbook\. If it is CSV, let its name end in \.csv",
        ),
        (replace_sheet, "t.xlsx is not a readable workbook"),
        (change_compression, "t.xlsx is not a readable workbook"),
        (inflate, "unpacks to more than"),
        (lambda path: save(path, []), "t.xlsx is empty"),
        (lambda path: save(path, ROWS, ROWS), '2 sheets with data: "sheet 0", "sheet 1". Keep one of them'),
        (lambda path: save(path, [["a", "b"], ["x", "y", "z"]]), "line 2: 3 cells, but 2 columns"),
        (
            lambda path: save(path, [["Report"], ["text", "label"], ["x", "y"]]),
            r"line 2: 2 cells, but 1 column \(Report\)\. The first row that is not empty must name every column",
        ),
        (lambda path: path.unlink(), "t.xlsx does not exist"),
    ],
)
def test_a_workbook_that_is_no_table_is_one_line(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    path = save(tmp_path / "t.xlsx", ROWS)
    damage(path)
    with pytest.raises(BertkitError, match=message) as error:
        list(Table(path).rows())
    assert not re.search(r"\n", str(error.value))
