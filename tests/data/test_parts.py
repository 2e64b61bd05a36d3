"""Parts of files: complete, bounded, and cut where documents end."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pytest

from bertkit.data.parts import LinePart, Part, cut_lines_into_parts, group_documents
from bertkit.data.sources import Boundary, LineForm, ReadOptions, TextChunk, find_line_form, read_chunks
from bertkit.errors import BertkitError

END_OF_LINE = ["\n", "\r\n", "\r"]


def cut(content: bytes, boundary: Boundary, size: int) -> list[bytes]:
    parts = list(cut_lines_into_parts([content], boundary, size))
    blocks = [content[at : at + 7] for at in range(0, len(content), 7)]
    assert list(cut_lines_into_parts(blocks, boundary, size)) == parts, "the blocks do not matter"
    assert b"".join(parts) == content
    return parts


@pytest.mark.parametrize("end", END_OF_LINE)
def test_parts_end_with_the_last_document_that_fits(end: str) -> None:
    fitting = "one\ntwo\n\nthree\n \t\n".replace("\n", end).encode()
    rest = "four\nfive\nsix\n".replace("\n", end).encode()
    assert cut(fitting + rest, "blank-line", len(fitting) + 8) == [fitting, rest]


@pytest.mark.parametrize("end", END_OF_LINE)
@pytest.mark.parametrize("boundary", ["file", "blank-line"])
def test_a_document_that_does_not_fit_is_cut_between_lines(boundary: Boundary, end: str) -> None:
    parts = cut("".join(f"line {number}{end}" for number in range(50)).encode(), boundary, 40)
    assert max(map(len, parts)) <= 40
    assert all(part.decode().endswith(end) for part in parts)
    assert min(map(len, parts[:-1])) > 20


def test_a_line_that_does_not_fit_is_cut_at_a_space_or_between_characters() -> None:
    assert cut(b"word word word word", "file", 12) == [b"word word ", b"word word"]
    parts = cut("한글é".encode() * 20, "file", 10)
    assert max(map(len, parts)) <= 10
    assert "".join(part.decode() for part in parts) == "한글é" * 20


def test_white_space_after_a_few_characters_is_no_reason_to_cut_inside_one() -> None:
    text = "日本語" + " " * 90 + "x\n"
    assert "".join(part.decode() for part in cut(text.encode(), "blank-line", 30)) == text


@pytest.mark.parametrize(
    "line", ["word word wo  ", "word word wo\u3000\u3000", "한글한글한글", "wordwordword", "wordwordwordw\r"]
)
def test_the_end_of_a_line_that_does_not_fit_is_no_blank_line(line: str, tmp_path: Path) -> None:
    content = f"{line}\nnext line\n\nanother\n".encode()
    parts = cut(content, "blank-line", len(line.encode()))
    form = LineForm(boundary="blank-line")
    found = documents(LinePart(tmp_path, form, "error", 0, len(part), part) for part in parts)
    assert found == [f"{line.removesuffix(chr(13))}\nnext line\n", "another\n"]


def test_a_limit_inside_of_a_wide_space_makes_no_blank_line(tmp_path: Path) -> None:
    text = "あ" * 33 + "\u3000\nい。\n"
    parts = [
        LinePart(tmp_path, LineForm(boundary="blank-line"), "error", 0, len(part), part)
        for part in cut(text.encode(), "blank-line", 100)  # 99 bytes, and the first of the space
    ]
    assert len(parts) > 1
    assert documents(parts) == [text]


def test_a_record_is_never_cut() -> None:
    lines = [b"1\n", b"22222222\n", b"3\n", b"4\n", b"5" * 99 + b"\n", b"6"]
    assert cut(b"".join(lines), "record", 5) == [lines[0], lines[1], lines[2] + lines[3], lines[4], lines[5]]


def documents(parts: Iterable[Part]) -> list[str]:
    """The documents, joined from the parts as ``UnitReader`` joins them."""
    found: list[str] = []
    ends_inside = False
    for part in parts:
        text = part.read()
        for place, (_, chunks) in enumerate(groupby(text.chunks, key=attrgetter("number"))):
            joined = "".join(chunk.text for chunk in chunks)
            if place == 0 and ends_inside and text.starts_inside:
                found[-1] += joined
            else:
                found.append(joined)
        ends_inside = text.ends_inside and bool(text.chunks)
    return found


def random_text(seed: int, end: str) -> bytes:
    rng = random.Random(seed)
    tokens = ["word. ", "né ", "글", "\n", "\n", "\n\n", " \n", "\n\u3000\n", "a longer line, of words.\n"]
    return "".join(rng.choices(tokens, k=200)).replace("\n", end).encode()


@pytest.mark.parametrize("boundary", ["file", "blank-line", "line"])
@pytest.mark.parametrize("end", END_OF_LINE)
@pytest.mark.parametrize("seed", range(7))
def test_parts_have_the_documents_of_the_file(tmp_path: Path, boundary: Boundary, end: str, seed: int) -> None:
    file = tmp_path / "a.txt"
    content = b"\xef\xbb\xbf" * (seed % 2) + random_text(seed, end)
    file.write_bytes(content)
    reading = ReadOptions(boundary=boundary)
    expected: dict[int, str] = {}
    for chunk in read_chunks(file, reading):
        expected[chunk.number] = expected.get(chunk.number, "") + chunk.text
    form = find_line_form(file, reading)
    assert form is not None
    for size in (23, 60, 333, 99_999):
        begin, parts = 0, list[LinePart]()
        for part in cut_lines_into_parts([content], boundary, size):
            parts.append(LinePart(file, form, "error", begin, len(part), part if seed % 3 else None))
            begin += len(part)
        assert documents(parts) == list(expected.values())


def chunks(*lengths: int) -> list[TextChunk]:
    """Documents of chunks of ten characters; ``lengths`` has the number of chunks of each."""
    return [TextChunk(number, f"{number:04}.{at:04} ") for number, length in enumerate(lengths) for at in range(length)]


def test_documents_are_grouped_and_large_ones_divided_alike() -> None:
    given = chunks(1, 1, 2, 7, 1, 1, 7, 2)
    parts = list(group_documents(given, 30))
    assert [each for part in parts for each in part.chunks] == given
    assert max(map(len, parts)) <= 30
    assert [(len(part.chunks), part.starts_inside) for part in parts] == [
        (2, False),
        (2, False),
        *[(3, False), (3, True), (1, True)],
        (2, False),
        *[(3, False), (3, True), (1, True)],
        (2, False),
    ]
    expected = ["".join(each.text for each in part) for _, part in groupby(given, key=attrgetter("number"))]
    assert documents(parts) == expected


def test_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("short")
    with pytest.raises(BertkitError, match=r"a\.txt has become shorter while it was read"):
        LinePart(file, LineForm("file"), "error", 3, 99).read()
    file.unlink()
    with pytest.raises(BertkitError, match=r"a\.txt cannot be read"):
        LinePart(file, LineForm("file"), "error", 3, 99).read()


def test_a_byte_order_mark_alone_is_no_document(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbf")
    for boundary in ("file", "blank-line", "line"):
        assert LinePart(file, LineForm(boundary), "error", 0, 3).read().chunks == []
