"""Reading files as documents: formats, boundaries, encodings, fields, and small chunks."""

from __future__ import annotations

import bz2
import gzip
import importlib
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import zstandard

from bertkit.data import sources
from bertkit.data.sources import (
    MAX_CHUNK_CHARACTERS,
    Boundary,
    ReadLog,
    ReadOptions,
    TextChunk,
    read_chunks,
    read_texts,
)
from bertkit.errors import BertkitError
from bertkit.formats import compression as compression_module
from bertkit.formats import records
from bertkit.formats.compression import ByteStream

GOOGLE = "The first one.\nAnd a second!\n\n\nAnother document begins.\nIt ends here.\n"
BOOK = (
    "It was a bright cold day in April, and the clocks\nwere striking. Nobody knew why they\ndid so at all.\n"
    "\nThe hallway smelt of cabbage and of old\nmats. At one end of it a poster hung on\nthe wall.\n"
)
KOREAN = "첫 문장이다. 둘째 문장이다.\n"
LENIENT = ReadOptions(on_bad_bytes="replace")


def texts(path: Path, reading: ReadOptions | None = None) -> list[str]:
    """The documents of a file, joined from their chunks."""
    documents: dict[int, str] = {}
    for chunk in read_chunks(path, reading):
        documents[chunk.number] = documents.get(chunk.number, "") + chunk.text
    assert list(documents) == list(range(len(documents)))
    return list(documents.values())


def write(path: Path, content: bytes) -> Path:
    packed: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    path.write_bytes(packed.get(path.suffix, bytes)(content))
    return path


def write_parquet(path: Path, **columns: list[object]) -> Path:
    table = pytest.importorskip("pyarrow").table(columns)
    importlib.import_module("pyarrow.parquet").write_table(table, path, row_group_size=3)
    return path


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz", ".zst"])
class TestEveryFormat:
    def test_text(self, tmp_path: Path, compression: str) -> None:
        path = write(tmp_path / f"a.txt{compression}", BOOK.encode())
        assert texts(path) == [BOOK]

    def test_jsonl(self, tmp_path: Path, compression: str) -> None:
        lines = [json.dumps({"id": number, "text": f"Text {number}.\n\nMore."}) for number in range(7)]
        path = write(tmp_path / f"a.jsonl{compression}", "\n".join(lines).encode())
        assert texts(path) == [f"Text {number}.\n\nMore." for number in range(7)]

    def test_parquet(self, tmp_path: Path, compression: str) -> None:
        plain = write_parquet(tmp_path / "plain.parquet", text=["Eins.", None, "둘.", "Trois."] * 2, id=list(range(8)))
        path = write(tmp_path / f"a.parquet{compression}", plain.read_bytes())
        assert texts(path) == ["Eins.", "", "둘.", "Trois."] * 2

    def test_the_position_ends_at_the_end_of_the_file(self, tmp_path: Path, compression: str) -> None:
        path = write(tmp_path / f"a.txt{compression}", BOOK.encode() * 99)
        log = ReadLog(ByteStream(path))
        assert list(read_chunks(path, log=log))
        assert log.stream.position == path.stat().st_size


@pytest.mark.parametrize(
    ("text", "boundary", "documents", "sentence_lines"),
    [
        (GOOGLE, "blank-line", 2, True),
        (BOOK, "file", 1, False),
        (BOOK.replace("\n", " ").replace("  ", "\n\n"), "file", 1, False),
        ("One.\nTwo.\nThree.\n", "file", 1, True),
        ("A first. And more.\nA second. And more.\n\nNew one. It goes on.\nAnd on. And on.\n", "blank-line", 2, False),
        ("고양이가 잔다.\n개가 짖는다.\n\n비가 온다.\n눈이 온다.\n", "blank-line", 2, True),
        (KOREAN * 3, "file", 1, False),
        ("no end of a sentence anywhere", "file", 1, False),
    ],
    ids=["google", "wrapped book", "unwrapped book", "lines", "paragraphs", "korean", "korean paragraphs", "no ends"],
)
def test_the_form_of_a_text_file_is_guessed(
    tmp_path: Path, text: str, boundary: Boundary, documents: int, sentence_lines: bool
) -> None:
    path = write(tmp_path / "a.txt", text.encode())
    log = ReadLog(ByteStream(path))
    chunks = list(read_chunks(path, log=log))
    assert (log.boundary, len(chunks), log.sentence_lines) == (boundary, documents, sentence_lines)


def test_a_given_boundary_overrides_the_guess(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", BOOK.encode())
    assert len(texts(path, ReadOptions(boundary="blank-line"))) == 2
    path = write(tmp_path / "b.txt", GOOGLE.encode())
    assert texts(path, ReadOptions(boundary="file")) == [GOOGLE]
    assert texts(path, ReadOptions(boundary="line")) == [f"{line}\n" for line in GOOGLE.split("\n") if line]
    with pytest.raises(BertkitError, match="no records"):
        texts(path, ReadOptions(boundary="record"))
    path = write(tmp_path / "c.jsonl", b'{"text": "x"}')
    assert texts(path, ReadOptions(boundary="record")) == ["x"]
    with pytest.raises(BertkitError, match="consists of records"):
        texts(path, ReadOptions(boundary="file"))


def test_a_line_that_is_longer_than_a_chunk_is_one_document(tmp_path: Path) -> None:
    longer = "word " * (MAX_CHUNK_CHARACTERS // 2)
    path = write(tmp_path / "a.txt", f"first\n{longer}\n\nlast".encode())
    chunks = list(read_chunks(path, ReadOptions(boundary="line")))
    assert [each.number for each in chunks] == [0, 1, 1, 1, 2]
    assert "".join(each.text for each in chunks if each.number == 1) == f"{longer}\n"


def test_lines_of_white_space_count_as_blank(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b" \n\n" + GOOGLE.replace("\n\n", "\n \t\u3000\n\n").encode() + b"\n\n")
    assert texts(path) == ["The first one.\nAnd a second!\n", "Another document begins.\nIt ends here.\n"]


def test_sentences_are_lines_or_are_split() -> None:
    assert TextChunk(0, "Mr. A. came. He saw.\n\n two \n", sentence_lines=True).sentences() == [
        "Mr. A. came. He saw.",
        "two",
    ]
    assert TextChunk(0, "He came. He\nsaw.\n").sentences() == ["He came.", "He\nsaw."]
    long = TextChunk(0, "word " * 5000 + "\n", sentence_lines=True).sentences()
    assert len(long) > 5
    assert max(map(len, long)) <= 2000


class TestEncodings:
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_byte_order_marks_and_line_ends_make_no_difference(self, tmp_path: Path, end: str, mark: bytes) -> None:
        path = write(tmp_path / "a.txt", mark + GOOGLE.replace("\n", end).encode())
        assert texts(path) == texts(write(tmp_path / "b.txt", GOOGLE.encode()))
        path = write(tmp_path / "a.jsonl", mark + f'{{"text": "a"}}{end}{{"text": "b"}}'.encode())
        assert texts(path) == ["a", "b"]

    def test_a_byte_order_mark_inside_the_text_is_kept(self, tmp_path: Path) -> None:
        assert texts(write(tmp_path / "a.txt", "a\ufeffb".encode())) == ["a\ufeffb"]

    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    def test_the_size_of_blocks_does_not_matter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
    ) -> None:
        content = "\ufeffé 한\r\n글 x\ry\n\r\nz\r".encode() + b"\xff\xed\x95"
        monkeypatch.setattr(compression_module, "_BLOCK", size)
        assert texts(write(tmp_path / "a.txt", content), LENIENT) == ["é 한\n글 x\ny\n\nz\n\ufffd\ufffd"]

    @pytest.mark.parametrize("block", [1 << 20, 5])
    @pytest.mark.parametrize(
        ("content", "line", "byte"),
        [
            (b"\xff", 1, 1),
            (b"ok\nok \xe9t\xe9\n", 2, 7),
            (b"ok\r\nok\rok\n\xb0\xa1", 4, 11),
            (b"\xef\xbb\xbfok \xff", 1, 7),
            ("한글\n한".encode() + b"\xed\x95", 2, 11),
            (b"a\n" * 99 + b"\xc0\x80", 100, 199),
        ],
        ids=["first", "latin-1", "line ends", "after a mark", "cut off", "overlong"],
    )
    def test_the_position_of_a_byte_that_is_not_utf8_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, line: int, byte: int, block: int
    ) -> None:
        monkeypatch.setattr(compression_module, "_BLOCK", block)
        path = write(tmp_path / "a.txt", content)
        with pytest.raises(BertkitError, match=f"a.txt, line {line}: byte {byte} of the file is not UTF-8") as caught:
            texts(path)
        assert caught.value.exit_code == 3

    def test_replaced_characters_are_counted(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.txt", "an honest \ufffd\n".encode() + b"caf\xe9 \xff\n")
        log = ReadLog(ByteStream(path))
        (chunk,) = read_chunks(path, LENIENT, log)
        assert chunk.text == "an honest \ufffd\ncaf\ufffd \ufffd\n"
        assert log.decoding.replaced == 2
        assert log.decoding.first_bad.endswith("a.txt, line 2: byte 18 of the file")

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
    def test_utf16_is_an_error_that_names_it(self, tmp_path: Path, encoding: str) -> None:
        with pytest.raises(BertkitError, match="UTF-16"):
            texts(write(tmp_path / "a.txt", BOOK.encode(encoding)), LENIENT)

    def test_a_compressed_file_without_its_suffix_is_an_error(self, tmp_path: Path) -> None:
        for pack, ending in ((gzip.compress, "gz"), (zstandard.compress, "zst")):
            path = write(tmp_path / "a.txt", pack(b"text"))
            with pytest.raises(BertkitError, match=rf"Let its name end in \.{ending}"):
                texts(path)


class TestDamage:
    @pytest.mark.parametrize("compression", [".gz", ".zst"])
    @pytest.mark.parametrize("keep", [0, 3, 0.5, -1])
    def test_a_truncated_file_is_an_error(self, tmp_path: Path, compression: str, keep: float) -> None:
        path = write(tmp_path / f"a.txt{compression}", bytes(range(32, 127)) * 999)
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content)) if keep == 0.5 else int(keep)])
        with pytest.raises(BertkitError, match="cut off"):
            texts(path)

    @pytest.mark.parametrize("compression", [".gz", ".zst"])
    def test_garbage_is_an_error_and_a_second_member_is_not(self, tmp_path: Path, compression: str) -> None:
        path = write(tmp_path / f"a.txt{compression}", b"one ")
        path.write_bytes(path.read_bytes() + write(tmp_path / f"b.txt{compression}", b"two").read_bytes())
        assert texts(path) == ["one two"]
        path.write_bytes(path.read_bytes() + b"garbage")
        with pytest.raises(BertkitError, match="damaged"):
            texts(path)

    def test_a_truncated_parquet_file_is_an_error(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "a.parquet", text=["some text"] * 99)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(BertkitError, match="not a readable Parquet file"):
            texts(path)

    def test_parquet_needs_pyarrow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "a.parquet", b"PAR1")
        real = importlib.import_module

        def without_pyarrow(name: str) -> ModuleType:
            if name.startswith("pyarrow"):
                raise ModuleNotFoundError(name)
            return real(name)

        monkeypatch.setattr(importlib, "import_module", without_pyarrow)
        with pytest.raises(BertkitError, match=r"pip install 'bertkit\[parquet\]'"):
            texts(path)


class TestFields:
    @pytest.mark.parametrize(
        ("record", "text"),
        [
            ({"title": "t", "text": "x"}, "x"),
            ({"body": "x", "url": "u"}, "x"),
            ({"id": 7, "lyrics": "x"}, "x"),
            ({"text": None, "content": "x"}, "x"),
        ],
    )
    def test_the_field_is_guessed(self, tmp_path: Path, record: object, text: str) -> None:
        assert texts(write(tmp_path / "a.jsonl", json.dumps(record).encode())) == [text]

    def test_a_record_can_be_bare_text_or_null(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", b'"bare"\n\n{"text": null}\n{"text": ""}\n')
        assert texts(path, ReadOptions(field="text")) == ["bare", "", ""]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('{"txet": "x"}', r'line 3 has no field "text". Its fields: txet. Did you mean "txet"\?'),
            ('{"text": 7}', 'line 3: field "text" is of type int, not text'),
            ('{"text": "x"', r"line 3 is not JSON: .* at character \d+"),
            ("[1, 2]", "line 3 is neither an object with a text field nor a text"),
            ("[" * 99_999, "line 3 is not JSON that can be read"),
            ("9" * 5000, "line 3 is not JSON that can be read"),
            ('{"text": "\\ud83d!"}', r"line 3: \\ud83d is an unpaired surrogate"),
        ],
        ids=["misspelt", "number", "torn", "list", "nested", "huge number", "surrogate"],
    )
    def test_the_error_for_a_bad_line_has_its_number(self, tmp_path: Path, line: str, message: str) -> None:
        path = write(tmp_path / "a.jsonl", f'{{"text": "x"}}\n\n{line}\n'.encode())
        with pytest.raises(BertkitError, match=message) as caught:
            texts(path)
        assert "\n" not in str(caught.value)

    def test_a_lone_surrogate_is_replaced_and_counted(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", b'{"text": "a\\ud83d\\ude00 \\ud83d"}\n')
        log = ReadLog(ByteStream(path))
        (chunk,) = read_chunks(path, LENIENT, log)
        assert chunk.text == "a\U0001f600 \ufffd"
        assert log.decoding.replaced == 1

    def test_two_candidate_fields_are_an_error(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", b'{"left": "x", "right": "y"}\n')
        with pytest.raises(BertkitError, match="which field is the text"):
            texts(path)
        assert texts(path, ReadOptions(field="right")) == ["y"]

    def test_columns_of_parquet(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "a.parquet", left=["x"], right=["y"], number=[7])
        with pytest.raises(BertkitError, match="which field is the text"):
            texts(path)
        with pytest.raises(BertkitError, match=r'no text column "rigth". It has: left, right. Did you mean "right"\?'):
            texts(path, ReadOptions(field="rigth"))
        assert texts(path, ReadOptions(field="right")) == ["y"]

    def test_a_line_of_json_has_a_maximum_length(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sources, "LONGEST_RECORD", 99)
        monkeypatch.setattr(records, "LONGEST_RECORD", 99)
        path = write(tmp_path / "a.jsonl", b'"ok"\n"' + b"x" * 500 + b'"\n')
        with pytest.raises(BertkitError, match="line 2 is longer than 99 characters"):
            texts(path)


class TestChunks:
    @pytest.fixture(autouse=True)
    def small_chunks(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 37)
        yield

    @pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
    @pytest.mark.parametrize("text", [BOOK, "word " * 99, "x" * 999, KOREAN * 13], ids=["book", "words", "x", "korean"])
    def test_chunks_are_small_and_complete(self, tmp_path: Path, name: str, text: str) -> None:
        path = write(tmp_path / name, (text if name == "a.txt" else json.dumps(text)).encode())
        chunks = list(read_chunks(path))
        assert len(chunks) > 1
        assert max(len(chunk.text) for chunk in chunks) <= 37
        assert texts(path) == [text]

    def test_chunks_end_between_words(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.txt", b"word " * 99)
        assert all(chunk.text.endswith(" ") for chunk in read_chunks(path))

    def test_the_size_of_blocks_does_not_matter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "a.txt", (BOOK + "word " * 99 + "x" * 99 + GOOGLE).encode())
        expected = list(read_chunks(path))
        for size in (1, 13, 36, 37, 38):
            monkeypatch.setattr(compression_module, "_BLOCK", size)
            assert list(read_chunks(path)) == expected


def test_texts_of_several_files(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.txt", b"One."), write(tmp_path / "b.jsonl.gz", b'"Two."')
    assert list(read_texts([first, second])) == ["One.", "Two."]


def test_real_files(data_folder: Path) -> None:
    book = data_folder / "corpora" / "books" / "a-doll-s-house.txt.gz"
    log = ReadLog(ByteStream(book))
    assert {chunk.number for chunk in read_chunks(book, log=log)} == {0}
    assert log.boundary == "file"
    articles = read_chunks(data_folder / "corpora" / "kowiki.jsonl.zst")
    assert next(articles).text.startswith("지미 카터")


WIKI = """<doc id="12" url="https://x.org?curid=12" title="A &amp; B">
A &amp; B

One is &lt; two. It goes on
Another paragraph.

</doc>

<doc id="13" url="https://x.org?curid=13" title="Empty">
</doc>
"""
GUTENBERG = """The Project Gutenberg eBook of A Book

*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***

It was a day
in April. Nobody knew.

*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***

START: FULL LICENSE. Please read this.
"""


@pytest.mark.parametrize("name", ["wiki_00", "wiki_00.bz2", "wiki.txt"])
def test_the_output_of_wiki_extractor_is_recognized(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, WIKI.encode())
    log = ReadLog(ByteStream(path))
    chunks = list(read_chunks(path, log=log))
    assert [chunk.text for chunk in chunks] == ["A & B\n\nOne is < two. It goes on\n\nAnother paragraph.", ""]
    assert chunks[0].sentences() == ["A & B", "One is < two.", "It goes on", "Another paragraph."]
    assert (log.origin, log.boundary) == ("WikiExtractor", "record")
    with pytest.raises(BertkitError, match="consists of records"):
        texts(path, ReadOptions(boundary="file"))


def test_json_records_without_a_suffix_are_recognized(tmp_path: Path) -> None:
    content = b'{"id": "12", "title": "A", "text": "One."}\n{"id": "13", "title": "B", "text": "Two."}\n'
    assert texts(write(tmp_path / "wiki_00", content)) == ["One.", "Two."]
    assert texts(write(tmp_path / "wiki_00.gz", content)) == ["One.", "Two."]
    assert texts(write(tmp_path / "a.txt", content)) == [content.decode()]


@pytest.mark.parametrize("boundary", ["auto", "blank-line"])
def test_a_book_of_gutenberg_loses_its_header_and_licence(tmp_path: Path, boundary: Boundary) -> None:
    path = write(tmp_path / "book.txt", b"\xef\xbb\xbf" + GUTENBERG.replace("\n", "\r\n").encode())
    log = ReadLog(ByteStream(path))
    (chunk,) = read_chunks(path, ReadOptions(boundary=boundary), log)
    assert chunk.sentences() == ["It was a day\nin April.", "Nobody knew."]
    assert log.origin == "Project Gutenberg"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.html", "<title>T</title><h1>Head</h1><p>One <b>two</b>\nthree.", ["Head\n\nOne two three."]),
        ("a.md.xz", "# Head\n\nOne *two*\nthree.\n", ["Head\n\nOne two three."]),
        (
            "a.xml.bz2",
            "<mediawiki><page><ns>0</ns><revision><text>''One'' [[b|two]].</text></revision></page></mediawiki>",
            ["One two."],
        ),
        ("a.wet.gz", "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 4\r\n\r\nOne.\r\n\r\n", ["One."]),
    ],
    ids=["html", "markdown", "mediawiki", "wet"],
)
def test_the_name_of_a_file_chooses_how_it_is_read(
    tmp_path: Path, name: str, content: str, expected: list[str]
) -> None:
    pytest.importorskip("mwparserfromhell")
    pytest.importorskip("selectolax")
    path = write(tmp_path / name, content.encode())
    log = ReadLog(ByteStream(path))
    assert [chunk.text for chunk in read_chunks(path, log=log)] == expected
    assert log.stream.position == path.stat().st_size
