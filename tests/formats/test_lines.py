"""Lines of text files, and files that are not text."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from tests.opened_files import count_opens

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.formats.lines import Lines, open_lines
from bertkit.formats.table_formats import Format
from bertkit.formats.tables import Table

pytestmark = pytest.mark.usefixtures("without_shape_checks")

HEADER = b"id,text,label\n"


def read(path: Path, data: bytes, form: Format | None = None) -> list[tuple[str, ...]]:
    path.write_bytes(data)
    table = Table(path, form)
    return [tuple(row.cells) for row in table.rows(*table.columns)]


def test_a_byte_order_mark_is_not_part_of_a_column_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfid,text\n1,x\n")
    assert Table(tmp_path / "t.csv").columns == ("id", "text")


def test_a_missing_file_and_a_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"no.csv does not exist"):
        Table(tmp_path / "no.csv")
    with pytest.raises(BertkitError, match=r"cannot be read: Is a directory"):
        Table(tmp_path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_json_may_be_one_long_line_and_other_files_not(suffix: str, tmp_path: Path) -> None:
    text = random.Random(0).randbytes(8_000_000).hex()  # a file that unpacks to 30 times its length is refused
    long = json.dumps([{"text": text[place : place + 100]} for place in range(0, len(text), 100)]).encode()
    assert len(long) > 16_000_000
    compress = gzip.compress if suffix else bytes
    (tmp_path / f"t.json{suffix}").write_bytes(compress(long))
    assert sum(1 for _ in Table(tmp_path / f"t.json{suffix}").rows("text")) == 160_000
    (tmp_path / f"t.jsonl{suffix}").write_bytes(compress(long))
    with pytest.raises(BertkitError, match="line 1: more than 16,000,000 bytes without a line end"):
        Table(tmp_path / f"t.jsonl{suffix}")


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_table_may_be_compressed_and_a_truncated_one_is_an_error(suffix: str, tmp_path: Path) -> None:
    rows = [(f"{row * 7919}", "text", "a") for row in range(5000)]
    data = COMPRESS[suffix](HEADER + "".join(",".join(row) + "\n" for row in rows).encode())
    assert read(tmp_path / f"t.csv{suffix}", data) == rows
    with pytest.raises(BertkitError, match=rf"t.csv{suffix} is damaged or cut off"):
        read(tmp_path / f"t.csv{suffix}", data[: len(data) // 2])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"PK\x03\x04\x14\x00\x06\x00",
            "t.csv is a zip archive. Unpack it, or let its name end in .xlsx",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "t.csv is an old Office document. Save it as text or CSV"),
        (b"PAR1\x15\x04", "t.csv is a Parquet file. Let its name end in .parquet"),
        (gzip.compress(HEADER, mtime=0), "t.csv is compressed by gzip. Let its name end in .gz"),
        (bz2.compress(HEADER), "t.csv is compressed by bzip2. Let its name end in .bz2"),
        (lzma.compress(HEADER), "t.csv is compressed by xz. Let its name end in .xz"),
        (zstandard.compress(HEADER), "t.csv is compressed by zstd. Let its name end in .zst"),
        ("id,text,label\n".encode("utf-16"), "t.csv is in UTF-16. Save it as UTF-8"),
    ],
)
def test_a_file_of_another_format_is_named_in_the_error(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        read(tmp_path / "t.csv", data)
    assert caught.value.exit_code == BAD_DATA


def test_random_bytes_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xff" + random.Random(7).randbytes(5000))
    with pytest.raises(BertkitError, match=r"t\.csv is not text\.$"):
        Table(tmp_path / "t.csv")


def test_a_look_at_the_beginning_and_one_reading_open_a_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    opened = count_opens(path, monkeypatch)
    lines = Lines(path)
    assert list(islice(lines.peek(), 2)) == ["one\n", "two\n"]
    assert next(lines.peek()) == "one\n"
    assert list(lines.read()) == ["one\n", "two\n", "three\n"]
    assert len(opened) == 1
    assert list(lines.read()) == ["one\n", "two\n", "three\n"]
    assert len(opened) == 2


def test_an_error_in_the_first_lines_is_an_error_again_when_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\xff\nthree\n")
    lines = Lines(path)
    for look in (lines.peek, lines.peek, lines.read):
        with pytest.raises(BertkitError, match=r"a\.txt, line 2: byte 1 of the line is not UTF-8"):
            list(look())


def test_lines_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("caf\u00e9\n\u0436\n".encode("cp1251", "replace"))
    with open_lines(path, "cp1251") as lines:
        assert list(lines) == ["caf?\n", "\u0436\n"]


def test_utf_8_is_not_read_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,label\nfür Müller schön,gut\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r"line 2 is UTF-8 and not CP1252: leave out --encoding"):
        list(Lines(path, "cp1252").read())
    path.write_text("text,label\nfür Müller schön,gut\n", encoding="cp1252")
    assert list(Lines(path, "cp1252").read())[1] == "für Müller schön,gut\n"


def test_the_error_for_text_that_is_not_western_asks_for_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\u043e\u0447\u0435\u043d\u044c\n".encode("cp1251"))
    with pytest.raises(BertkitError, match=r"is not UTF-8\. Name the encoding of the file, such as --encoding cp1251"):
        Lines(path, "utf-8").peek().__next__()
    with pytest.raises(BertkitError, match=r"is not SHIFT_JIS\. Name the encoding"):
        next(Lines(path, "shift_jis").read())


@pytest.mark.parametrize(
    ("text", "encoding", "advice"),
    [
        (
            "caf\u00e9\n",
            "cp1252",
            r'; it reads as Windows-1252 \("caf\u00e9"\)\. Convert the file \(iconv -f cp1252 -t UTF-8\)\.$',
        ),
        ("\u043e\u0447\u0435\u043d\u044c\n", "cp1251", r"is not UTF-8\. Convert the file \(iconv -f OLD -t UTF-8\)\.$"),
    ],
)
def test_where_no_encoding_can_be_named_the_file_is_to_be_converted(
    tmp_path: Path, text: str, encoding: str, advice: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(BertkitError, match=advice), open_lines(path) as lines:
        list(lines)
