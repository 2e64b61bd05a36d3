"""Encodings that a user may name, and what bytes that are not UTF-8 may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.formats.encodings import check_encoding, guess_encoding
from bertkit.formats.tables import Table


@pytest.mark.parametrize("name", ["utf-8", "cp1252", "latin-1", "shift_jis", "gb18030"])
def test_encodings_that_can_be_read_line_by_line(name: str) -> None:
    assert check_encoding(name) == name


@pytest.mark.parametrize("name", ["utf-8", "UTF-8", "utf8", "U8", "utf-8-sig", "utf_8_sig"])
def test_utf_8_has_one_name_so_that_a_byte_order_mark_is_left_out(name: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("text,label\nfine,good\n", encoding="utf-8-sig")
    assert Table(tmp_path / "table.csv", encoding=check_encoding(name)).columns == ("text", "label")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cp9999", "no encoding is called cp9999. Give one such as cp1252"),
        ("hex", "no encoding is called hex"),
        ("undefined", "no encoding is called undefined"),
        ("utf-16", "--encoding utf-16 is not supported. Convert the file: iconv -f utf-16 -t UTF-8"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        check_encoding(name)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == WRONG_USAGE


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        ("5,un café noir,a", "cp1252", ("cp1252", "café")),
        ("très bon", "latin-1", ("cp1252", "très")),
        ("\u201cgood\u201d", "cp1252", ("cp1252", "\u201c")),
        ("очень хорошо", "cp1251", None),
        ("とても良い", "shift_jis", None),
        ("아주 좋아요", "cp949", None),
    ],
)
def test_western_text_is_told_from_other_text(text: str, encoding: str, found: tuple[str, str] | None) -> None:
    content = text.encode(encoding)
    with pytest.raises(UnicodeDecodeError) as caught:
        content.decode()
    assert guess_encoding(content, caught.value.start) == found
