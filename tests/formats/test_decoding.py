"""Bytes to text: positions of bad bytes, line ends, and long lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.decoding import DecodingLog, count_lines, cut_lines, decode

PATH = Path("a.txt")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 99])
def test_text_does_not_depend_on_the_size_of_blocks(size: int) -> None:
    data = "\ufeffone\r\ntwo\rthree \u00e9\uac00\n".encode()
    log = DecodingLog()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    assert "".join(decode(PATH, blocks, "error", log)) == "one\ntwo\nthree \u00e9\uac00\n"
    assert log.replaced == 0


def test_a_byte_that_is_not_utf8_is_named_by_its_place() -> None:
    with pytest.raises(BertkitError, match=r"a.txt, line 2: byte 6 of the file is not UTF-8"):
        list(decode(PATH, [b"one\nt\xe9 two\n"], "error", DecodingLog()))


def test_bad_bytes_are_replaced_and_counted() -> None:
    log = DecodingLog()
    assert "".join(decode(PATH, [b"t\xe9 t\xff\n"], "replace", log)) == "t\ufffd t\ufffd\n"
    assert (log.replaced, log.first_bad) == (2, "a.txt, line 1: byte 2 of the file")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfea\0", "is in UTF-16. Save it as UTF-8: iconv"),
        (b"\x1f\x8b\x08", "is compressed by gzip"),
        (b"a\0b\0c\0d\0", "looks like UTF-16 or binary data: 4 of 8 bytes are zero"),
    ],
)
def test_other_formats_are_recognised(data: bytes, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        list(decode(PATH, [data], "error", DecodingLog()))


def test_long_lines_are_cut_at_spaces_wherever_the_chunks_end() -> None:
    text = "seven wide rivers ran\nslowly"
    expected = ["seven wide ", "rivers ran\n", "slowly"]
    for size in (1, 5, 99):
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        assert list(cut_lines(chunks, 11)) == expected


@pytest.mark.parametrize("size", [1, 5, 99])
@pytest.mark.parametrize("ending", ["", " ", "  \t "])
def test_the_end_of_a_long_line_is_no_line_of_its_own(ending: str, size: int) -> None:
    """It would be blank, and end a document."""
    text = f"{'x' * 22}{ending}\nnext"
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    assert list(cut_lines(chunks, 11)) == ["x" * 11, f"{'x' * 11}{ending}\n", "next"]


@pytest.mark.parametrize("size", [1, 2, 3, 99])
def test_lines_are_counted_up_to_a_byte(size: int) -> None:
    data = b"one\r\ntwo\rthree\n\n\r\nfour"
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [count_lines(blocks, end) for end in (0, 3, 5, 9, 15, 16, 18, 99)] == [0, 0, 1, 2, 3, 4, 5, 5]


def test_a_part_of_a_file_has_places_of_the_file() -> None:
    with pytest.raises(BertkitError, match=r"a.txt, line 8: byte 106 of the file is not UTF-8"):
        list(decode(PATH, [b"one\ntw\xff"], "error", DecodingLog(), offset=99, first_line=7))
    text = "".join(decode(PATH, ["\ufeffone".encode()], "error", DecodingLog(), offset=99))
    assert text == "\ufeffone", "a byte order mark is at the start of a file only"
