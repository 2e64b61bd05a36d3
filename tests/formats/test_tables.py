"""Rows of table files, the well-formed and the broken."""

from __future__ import annotations

import csv
import math
import time
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.opened_files import count_opens

from bertkit.errors import BertkitError
from bertkit.formats.table_formats import Format, Row
from bertkit.formats.tables import Table

HEADER = b"id,text,label\n"


LITERAL = Format(delimiter="\t", quotes=False)


def read(path: Path, data: bytes, form: Format | None = None) -> list[tuple[str, ...]]:
    path.write_bytes(data)
    table = Table(path, form)
    return [tuple(row.cells) for row in table.rows(*table.columns)]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"1,good,a\n", [("1", "good", "a")]),
        (b"1,good,a", [("1", "good", "a")]),
        (b"1,good,a\r\n2,bad,b\r\n", [("1", "good", "a"), ("2", "bad", "b")]),
        (b'1,"good, or so",a\n', [("1", "good, or so", "a")]),
        (b'1,"he said ""no""",a\n', [("1", 'he said "no"', "a")]),
        (b'1,he said "no",a\n', [("1", 'he said "no"', "a")]),
        (b'1,"two\nlines",a\n2,x,b\n', [("1", "two\nlines", "a"), ("2", "x", "b")]),
        (b"\n1,good,a\n\n\n2,bad,b\n\n", [("1", "good", "a"), ("2", "bad", "b")]),
        ("1,\u00e9\u2028\x85,a\n".encode(), [("1", "\u00e9\u2028\x85", "a")]),
        (b"1,,a\n", [("1", "", "a")]),
    ],
)
def test_csv(data: bytes, rows: list[tuple[str, ...]], tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", HEADER + data) == rows


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1,good,a\n2,b\n", r"t.csv, line 3: 2 cells, but 3 columns \(id, text, label\)"),
        (b"1,good,a\n2,so,so,b\n", r"t.csv, line 3: 4 cells, .*Put quotes around a cell that contains a comma\.$"),
        (b"1,good,a\n2,b\n", r"t.csv, line 3: 2 cells, .*Fix the row\.$"),
        (b"1,x,a\n2," + b"," * 1_000_000 + b"\n", "t.csv, line 3: 1,000,002 cells, but 3 columns"),
        (b'1,x,a\n2,"open,b\n3,y,a\n4,z,b\n', "t.csv, line 3: a quote is opened here and never closed"),
        (b'1,x,a\n2,"open,b\n' + b"3,y,a\n" * 200_000, "t.csv, line 3: a quote is opened here and never closed"),
        (b'1,"x\ny",a\n2,"open,b\n3,"y",a\n', "t.csv, line 4: text follows a closing quote"),
        (b"1,one\rtwo,a\n", "t.csv, line 2: a carriage return inside the row"),
        (b"1,nul\0nul,a\n", "t.csv, line 2: a NUL character"),
        (
            b"1,ok,a\n2,caf\xe9,a\n",
            "is not UTF-8; it reads as Windows-1252 .*café",
        ),
        (b"1,ok,a\n" + HEADER, "t.csv, line 3: the line of column names again"),
    ],
)
def test_broken_csv_is_an_error_with_its_line(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=message):
        read(tmp_path / "t.csv", HEADER + data)


def test_a_value_that_is_the_name_of_the_only_column_is_a_value(tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", b"word\nhello\nword\n") == [("hello",), ("word",)]


def test_columns_with_the_same_name_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match='more than one column "text"'):
        read(tmp_path / "t.csv", b"text,text\nx,y\n")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"t.csv is empty"):
        read(tmp_path / "t.csv", data)


def test_the_format_can_make_quotes_literal(tmp_path: Path) -> None:
    assert read(tmp_path / "t.tsv", b'text\tlabel\n"x"\ta\n', LITERAL) == [('"x"', "a")]


def test_two_usual_names_outweigh_a_third_that_recurs(tmp_path: Path) -> None:
    """POS is a column, and the part of speech of 's."""
    rows = "Ada,NNP,B-PER\n's,POS,O\nfilm,NN,O\n"
    (tmp_path / "t.csv").write_text("Word,POS,Tag\n" + rows, encoding="utf-8")
    assert Table(tmp_path / "t.csv").columns == ("Word", "POS", "Tag")
    (tmp_path / "n.csv").write_text("Word,POS,X\n" + rows, encoding="utf-8")
    assert Table(tmp_path / "n.csv").columns == ("1", "2", "3")


@pytest.mark.parametrize("first", [b"1,good film\n", b"good,fine film\n", b"good,good\n"])
def test_a_first_line_of_data_is_not_taken_for_names(first: bytes, tmp_path: Path) -> None:
    rows = read(tmp_path / "t.csv", first + b"good,poor film\nbad,other film\n1,last film\n")
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"text": "a"}\n{"text": }\n', "t.jsonl, line 2: not JSON"),
        (b'{"text": "a"}\n[1]\n', "t.jsonl, line 2: not a JSON object"),
        (b'[{"text": "a"}]\n', "t.jsonl is one JSON list. Let its name end in .json, or write one object per line"),
        (b'{"text": "a"}\n{"texte": "b"}\n', 't.jsonl, line 1: no field "texte". Did you mean "text"'),
        (b'{"text": NaN}\n', "t.jsonl, line 1: not JSON .NaN is not a JSON number"),
        (b'{"text": "a", "x": 1e999}\n', "t.jsonl, line 1: not JSON .1e999 is larger than any number"),
        (b'{"text": "a"}\n' + b"[" * 100_000 + b"\n", "t.jsonl, line 2: not JSON"),
        (b'{"text": "a"', "t.jsonl, line 1: not JSON"),
    ],
)
def test_broken_json_lines_are_errors_with_their_line(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=message):
        read(tmp_path / "t.jsonl", data)


def test_json_values_become_what_a_csv_file_would_hold(tmp_path: Path) -> None:
    data = b'{"a": 1, "b": 2.5, "c": true, "d": null, "e": "x", "f": ["y"]}\n'
    assert read(tmp_path / "t.jsonl", data) == [("1", "2.5", "true", "", "x", '["y"]')]


def test_a_json_field_that_is_not_read_may_be_absent(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b'{"text": "a", "note": "n"}\n\n{"text": "b"}\n')
    table = Table(tmp_path / "t.jsonl")
    assert [(row.line, *row.cells) for row in table.rows("text")] == [(1, "a"), (3, "b")]
    assert table.sample(5) == [["a", "n"], ["b", ""]]


def test_a_damaged_parquet_file_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(BertkitError, match="not a readable Parquet file"):
        read(tmp_path / "t.parquet", b"PAR1 and no more")


def test_rows_know_their_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(HEADER + b'1,"two\nlines",a\n\n2,x,b\n')
    assert [row.line for row in Table(tmp_path / "t.csv").rows("id")] == [2, 5]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.txt"])
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=60) | st.text('ab1,;\t|"\n\r {}[]:\\\ufeff', max_size=60).map(str.encode))
def test_any_bytes_are_rows_or_an_error_for_the_user(name: str, data: bytes, tmp_path: Path) -> None:
    try:
        rows = read(tmp_path / name, data)
    except BertkitError as error:
        assert "\n" not in str(error)
    else:
        assert len({len(row) for row in rows}) <= 1


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), min_size=1, max_size=5))
def test_rows_of_a_csv_writer_are_read_back(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    rows = [(f"{first}x", second) for first, second in rows if "\0" not in first + second]
    path = tmp_path / "t.csv"
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("first name", "second name"), *rows])
    except UnicodeEncodeError:
        return
    form = Format(delimiter=",", quotes=True)
    assert [tuple(row.cells) for row in Table(path, form).rows("first name", "second name")] == rows


@pytest.mark.parametrize("name", ["column{}", "{}"])
def test_a_table_of_very_many_columns_is_refused_at_once(name: str, tmp_path: Path) -> None:
    cells = ",".join(name.format(number) for number in range(100_000)).encode()
    begin = time.monotonic()
    with pytest.raises(BertkitError, match=r"t\.csv has 100,000 columns; 10,000 are the most"):
        read(tmp_path / "t.csv", cells + b"\n" + cells + b"x\n")
    assert time.monotonic() - begin < 30  # where every name is compared with every other, it takes minutes


def test_a_table_that_keeps_its_rows_is_opened_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,text\n" + "".join(f"{row},row {row}\n" for row in range(3000)))
    opened = count_opens(path, monkeypatch)
    table = Table(path, keeps_rows=True)
    assert len(table.sample(2000)) == 2000
    rows = list(table.rows("text"))
    assert [row.cells for row in rows[:2]] == [["row 0"], ["row 1"]]
    assert len(rows) == 3000
    assert list(table.rows("text")) == rows
    assert len(opened) == 1


def test_a_reading_that_was_given_up_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text\nseven\nwide\n")
    table = Table(path, keeps_rows=True)
    assert next(table.rows("text")).cells == ["seven"]
    assert [row.cells for row in table.rows("text")] == [["seven"], ["wide"]]


def test_kept_rows_keep_the_count_of_broken_ones(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\n1\t2\nbroken\n3\t4\n")
    table = Table(path, Format(skips_broken=True), keeps_rows=True)
    for _ in range(2):
        assert [row.cells for row in table.rows("b")] == [["2"], ["4"]]
        assert table.broken == 1


def test_a_table_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("nr;opinion\n5;Très \u20acheap\n".encode("cp1252"))
    table = Table(path, encoding="cp1252")
    assert table.columns == ("nr", "opinion")
    assert [row.cells for row in table.rows("opinion", "nr")] == [["Très \u20acheap", "5"]]
    assert Table(path, encoding="cp1252").form.delimiter == ";"


def test_a_json_object_over_several_lines_is_one_row(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{\n  "text": "a, b",\n  "label": 1\n}\n')
    table = Table(path)
    assert [row.cells for row in table.rows("text", "label")] == [["a, b", "1"]]


def test_a_line_for_excel_is_named(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"t.csv, line 1: sep=; is a line for Excel alone. Delete it"):
        read(tmp_path / "t.csv", b"sep=;\ntext;label\na;b\n")


def test_a_json_list_of_records_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[\n {"nr": 5, "text": "good"},\n {"nr": 6, "text": null, "more": 1}\n]\n')
    table = Table(path)
    assert table.form.kind == "json"
    assert table.columns == ("nr", "text", "more")
    assert list(table.rows("text", "nr")) == [Row(1, ["good", "5"]), Row(2, ["", "6"])]
    assert table.sample(9) == [["5", "good", ""], ["6", "", "1"]]
    assert list(table.all_values()) == [[5, "good", None], [6, None, 1]]
    assert table.sample(1) == [["5", "good", ""]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "t.json is empty"),
        ('[{"a": 1}, 3]', "t.json: item 2 of the list is not a JSON object"),
        ('[{"a": 1}, {"b": 2}]', 't.json, row 2: no field "a"'),
        ('[{"a": 1}', r"t.json: not JSON"),
    ],
)
def test_a_json_list_that_is_not_a_table(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(BertkitError, match=message):
        list(Table(path).rows("a"))


def test_quotes_after_a_space_delimit_a_cell(tmp_path: Path) -> None:
    rows = read(tmp_path / "t.csv", b'"text", "label"\n"One, two.", "a"\n"Three ""four"".", "b"\n')
    assert rows == [("One, two.", "a"), ('Three "four".', "b")]
    assert Table(tmp_path / "t.csv").columns == ("text", "label")
    assert read(tmp_path / "u.csv", b'id,text\n1, "So" he said.\n') == [("1", ' "So" he said.')]


def test_spaces_around_a_name_do_not_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text, label \nOne., a\n", encoding="utf-8")
    table = Table(tmp_path / "t.csv")
    assert table.columns == ("text", "label")
    assert [row.cells for row in table.rows("label")] == [[" a"]]


def test_empty_columns_at_the_end_need_no_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label,,\nOne.,a,,\nTwo.,b,,\nThree.,a,,\n", encoding="utf-8")
    table = Table(tmp_path / "t.csv")
    assert table.columns == ("text", "label", "", "")
    assert [row.cells for row in table.rows("text", "label")] == [["One.", "a"], ["Two.", "b"], ["Three.", "a"]]


def test_columns_without_a_name_keep_their_values(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,,\na b,1,2\n", encoding="utf-8")
    table = Table(tmp_path / "t.csv")
    assert [row.cells for row in table.rows(*table.columns)] == [["a b", "1", "2"]]
    assert list(table.all_values()) == [["a b", "1", "2"]]


def test_missing_numbers_decimals_and_dates_of_parquet(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "score": [0.5, math.nan],
        "price": [Decimal("1.50"), Decimal("2.25")],
        "day": [date(2018, 10, 11), None],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    cells = [row.cells for row in Table(tmp_path / "t.parquet").rows("score", "price", "day")]
    assert cells == [["0.5", "1.50", "2018-10-11"], ["", "2.25", ""]]


def test_a_text_may_be_the_name_of_the_column(tmp_path: Path) -> None:
    assert read(tmp_path / "a.txt", b"one\ntext\n") == [("one",), ("text",)]
    assert read(tmp_path / "a.csv", b"a,1\n1,2\nb,3\n") == [("a", "1"), ("1", "2"), ("b", "3")]


@pytest.mark.parametrize(
    ("name", "first", "cells"),
    [
        ("a.tsv", "Well, yes, no, maybe\t1", ("Well, yes, no, maybe", "1")),
        ("a.csv", "good; fun; short,pos", ("good; fun; short", "pos")),
        ("b.csv", "good, fun, short;pos", ("good, fun, short", "pos")),
    ],
)
def test_marks_inside_the_first_text_are_no_delimiters(
    name: str, first: str, cells: tuple[str, ...], tmp_path: Path
) -> None:
    mark = next(mark for mark in "\t;," if cells[0] + mark + cells[1] == first)
    rows = read(tmp_path / name, f"{first}\nplain{mark}{cells[1]}\nalso{mark}{cells[1]}\n".encode())
    assert rows[0] == cells


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text,2019_20", ("text", "2019_20")),
        ("text,2019", ("1", "2")),
        ("text,label,2019", ("text", "label", "2019")),
        ("review,sentiment,inf", ("review", "sentiment", "inf")),
    ],
)
def test_a_header_may_have_a_name_that_begins_as_a_number(
    header: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\nfine,1\nbad,0\n")
    assert Table(tmp_path / "t.csv").columns == columns


@pytest.mark.parametrize("header", ["0,1", ",0,1"])
def test_the_numbers_that_pandas_writes_over_columns_are_names(tmp_path: Path, header: str) -> None:
    index = "7," if header.startswith(",") else ""
    (tmp_path / "t.csv").write_text(f"{header}\n{index}fine,1\n{index}bad,0\n")
    table = Table(tmp_path / "t.csv")
    assert [row.cells for row in table.rows("0", "1")] == [["fine", "1"], ["bad", "0"]]


def test_the_index_that_pandas_writes_without_a_name_is_an_index(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",text,label\n7,fine,a\n3,bad,b\n")
    assert Table(tmp_path / "t.csv").columns == ("index", "text", "label")
    (tmp_path / "e.csv").write_text(",text,label\n,fine,a\n,bad,b\n")
    assert Table(tmp_path / "e.csv").columns == ("", "text", "label"), "an empty column"


@pytest.mark.parametrize(("name", "text"), [("t.json", "{}"), ("t.json", "[{}]"), ("t.jsonl", "{}\n{}\n")])
def test_records_without_fields_are_no_table(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BertkitError, match="has records without fields"):
        Table(tmp_path / name)


def test_commas_in_a_tsv_of_one_column_are_no_delimiters(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", b"sentence\nwell, yes\nno\n") == [("well, yes",), ("no",)]
    assert read(tmp_path / "b.tsv", b"text,label\nyes,1\nno,0\n") == [("yes", "1"), ("no", "0")]


def test_a_field_that_only_later_rows_have_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b", "more": 1}\n')
    table = Table(path)
    assert table.columns == ("text", "more")
    assert list(table.all_values()) == [["a", None], ["b", 1]]
    with pytest.raises(BertkitError, match=r'line 1: no field "more"\. Write null where it has no value'):
        list(table.rows("more"))


@pytest.mark.parametrize(("name", "text"), [("t.jsonl", "{}\n{}\n"), ("t.json", "[{},{}]")])
def test_a_field_of_an_object_is_a_column_for_who_names_it(tmp_path: Path, name: str, text: str) -> None:
    rows = ['{"text": "a", "of": {"score": 1.5, "by": {"name": "x"}, "all": [1]}}', '{"text": "b", "of": {"score": 2}}']
    (tmp_path / name).write_text(text.replace("{}", "%s") % tuple(rows))
    table = Table(tmp_path / name)
    assert list(table.columns) == ["text", "of"]
    assert [row.cells for row in table.rows("of.score", "text")] == [["1.5", "a"], ["2", "b"]]
    assert all(column in table for column in ("text", "of", "of.score", "of.by.name"))
    assert not any(column in table for column in ("of.by", "of.all", "of.nothing", "text.of"))
    with pytest.raises(BertkitError, match=r'no field "of\.by\.name"\. Write null'):
        list(table.rows("of.by.name"))
    with pytest.raises(BertkitError, match=r"Its columns: text, of, of\.score, of\.by\.name\. Did you mean"):
        list(table.rows("of.scor"))


def test_a_misspelt_field_of_a_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a"}\n{"texte": "b"}\n')
    with pytest.raises(BertkitError, match=r't\.jsonl, line 2: no field "text"\. Did you mean "texte"'):
        list(Table(path).rows("text"))


def test_bytes_that_are_no_text_are_kept_with_escapes(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cells = {"text": ["good"], "image": [b"\xff\xd8a"], "vector": [[0.5, float("nan")]]}
    parquet.write_table(arrow.table(cells), tmp_path / "t.parquet")
    table = Table(tmp_path / "t.parquet")
    assert list(table.all_values()) == [["good", "\\xff\\xd8a", [0.5, None]]]
    with pytest.raises(BertkitError, match=r'row 1: "image" is bytes that are no UTF-8\. Convert the column'):
        table.sample(1)


def test_a_larger_limit_of_the_program_for_cells_of_csv_is_kept(tmp_path: Path) -> None:
    before = csv.field_size_limit(3_000_000)
    try:
        rows = read(tmp_path / "t.csv", b"text,label\n" + b"x" * 2_000_000 + b",a\n")
        assert csv.field_size_limit() == 3_000_000
    finally:
        csv.field_size_limit(before)
    assert [len(text) for text, _ in rows] == [2_000_000]


def test_a_field_may_first_occur_in_any_record(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a"}\n' * 1500 + '{"text": "b", "label": "x"}\n')
    table = Table(path)
    assert table.columns == ("text", "label")
    assert list(table.all_values())[-1] == ["b", "x"]
