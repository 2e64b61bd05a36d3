"""Texts of WARC records, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.formats import compression, wet
from bertkit.formats.compression import ByteStream
from bertkit.formats.decoding import BadBytes, DecodingLog
from bertkit.formats.wet import read_wet


def record(text: str | bytes, kind: str = "conversion") -> bytes:
    content = text if isinstance(text, bytes) else text.encode()
    header = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Type: text/plain\r\nContent-Length: {len(content)}\r\n\r\n"
    return header.encode() + content + b"\r\n\r\n"


def read(path: Path, content: bytes, on_bad_bytes: BadBytes = "error", log: DecodingLog | None = None) -> list[str]:
    path.write_bytes(content)
    return list(read_wet(ByteStream(path), on_bad_bytes, log or DecodingLog()))


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_a_document_is_a_conversion_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(compression, "_BLOCK", size)
    content = (
        record("Software: x\r\n", "warcinfo")
        + record("Menu\n한글 one.\r\nTwo\u2028and more.")
        + record("")
        + record("Three.")
    )
    assert read(tmp_path / "a.wet", content) == ["Menu\n\n한글 one.\n\nTwo\u2028and more.", "", "Three."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (record("One.") + record("Two.")[:-8], "record 2 is cut off: it has 0 of 4 bytes"),
        (record("One.") + record("Two.")[:30], "record 2: no WARC header"),
        (b"plain text", "record 1: no WARC header"),
        (b"x" * 70_000, "record 1: no WARC header"),
        (b"WARC/1.0\r\nContent-Length: -1\r\n\r\n", "record 1: no WARC header with a Content-Length"),
        (b"WARC/1.0\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", "at most 134,217,728 are read"),
        (record("One.") + record(b"caf\xe9."), "record 2: byte 4 of the text is not UTF-8"),
    ],
    ids=["cut text", "cut header", "text", "no header end", "negative", "huge", "not UTF-8"],
)
def test_a_damaged_file_is_an_error_with_the_record(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        read(tmp_path / "a.wet", content)
    assert caught.value.exit_code == BAD_DATA


def test_bytes_that_are_not_utf8_are_replaced_and_counted(tmp_path: Path) -> None:
    log = DecodingLog()
    assert read(tmp_path / "a.wet", record(b"caf\xe9."), "replace", log) == ["caf\ufffd."]
    assert log.replaced == 1


def test_a_record_that_is_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wet, "LONGEST_RECORD_BYTES", 9)
    with pytest.raises(BertkitError, match="record 1 has 10 bytes; at most 9 are read"):
        read(tmp_path / "a.wet", record("0123456789"))
