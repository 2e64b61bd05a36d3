"""Texts in the records of JSON Lines and Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertkit.errors import BertkitError
from bertkit.formats.compression import ByteStream
from bertkit.formats.decoding import DecodingLog
from bertkit.formats.records import find_field, read_jsonl, read_parquet

PATH = Path("a.jsonl")


def read(lines: list[str], field: str | None = None) -> list[str]:
    return list(read_jsonl(PATH, lines, field, "error", DecodingLog()))


def test_the_text_field_is_guessed_or_given() -> None:
    lines = ['{"title": "t", "text": "one"}', "", '"two"', '{"title": "u", "text": null}']
    assert read(lines) == ["one", "two", ""]
    assert read(['{"title": "t", "text": null}', '{"title": "u", "text": "one"}']) == ["", "one"]
    assert read(['{"a": "x", "b": "y"}'], "b") == ["y"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "a.jsonl, line 1 is not JSON"),
        ("[1]", "line 1 is neither an object with a text field nor a text: write one of them per line"),
        ('{"a": "x", "b": "y"}', "which field is the text"),
        ('{"text": 3, "content": "x", "body": 1}', None),
    ],
)
def test_a_wrong_line_is_an_error_with_its_number(line: str, message: str | None) -> None:
    if message is None:
        assert read([line]) == ["x"]
        return
    with pytest.raises(BertkitError, match=message):
        read([line])


def test_half_a_character_is_an_error_or_replaced_and_counted() -> None:
    line = '{"text": "a \\ud83d b"}'
    with pytest.raises(BertkitError, match="an unpaired surrogate"):
        read([line])
    log = DecodingLog()
    assert list(read_jsonl(PATH, [line], None, "replace", log)) == ["a \ufffd b"]
    assert log.replaced == 1


def test_rows_of_parquet_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"text {number}" for number in range(137)]
    pq.write_table(pa.table({"id": list(range(138)), "text": [*texts, None]}), path)
    stream = ByteStream(path)
    assert list(read_parquet(stream, None, "error", DecodingLog())) == [*texts, ""]
    assert stream.position == path.stat().st_size
    with pytest.raises(BertkitError, match=r'no text column "txt"\. It has: text\. Did you mean "text"'):
        list(read_parquet(ByteStream(path), "txt", "error", DecodingLog()))


def test_the_field_of_a_file_is_that_of_its_first_object() -> None:
    assert find_field(PATH, ['"bare"', "", '{"id": 7, "body": "x"}', '{"text": "y"}']) == "body"
    assert find_field(PATH, ['"bare"', '"texts"']) is None


def test_lines_of_a_part_have_numbers_of_the_file() -> None:
    with pytest.raises(BertkitError, match=r"a\.jsonl, line 1,002 is not JSON"):
        list(read_jsonl(PATH, ['"one"', "{"], None, "error", DecodingLog(), first_line=1001))


def test_a_categorical_column_of_parquet_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = ["one text", "another", "one text"]
    pq.write_table(pa.table({"text": pa.array(texts).dictionary_encode(), "stars": [1, 2, 3]}), path)
    assert list(read_parquet(ByteStream(path), None, "error", DecodingLog())) == texts


def test_columns_of_parquet_have_different_names_and_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = [pa.array(["a"]), pa.array([["b", "c"]])]
    pq.write_table(pa.Table.from_arrays([columns[0]] * 2, names=["text", "text"]), path)
    with pytest.raises(BertkitError, match=r'a\.parquet has more than one column "text"\. Rename all but one\.$'):
        list(read_parquet(ByteStream(path), None, "error", DecodingLog()))
    pq.write_table(pa.Table.from_arrays(columns, names=["text", "lists"]), path)
    assert list(read_parquet(ByteStream(path), None, "error", DecodingLog())) == ["a"]
    with pytest.raises(BertkitError, match='has no text column "lists"'):
        list(read_parquet(ByteStream(path), "lists", "error", DecodingLog()))
