"""The encoding of a text file: UTF-8, or what the user names; bytes that are not UTF-8 are looked at for the error."""

from __future__ import annotations

import codecs
import re
from functools import cache
from pathlib import Path

from bertkit.errors import data_error, usage_error

UTF_8 = "utf-8"
_UTF_8_NAMES = (UTF_8, "utf-8-sig")
"""Python's names of its two forms; the second has a byte order mark."""

_WESTERN = "cp1252"
_MANY_BYTES = re.compile(rb"[\x80-\xff]{4}")
"""Letters beyond ASCII are rarely neighbours in Western languages, and always in Cyrillic or Asian ones."""

_FEWEST_OF_UTF_8 = 3
"""Characters beyond ASCII in a line that is UTF-8, whatever encoding is named."""

_LETTERS = re.compile(r"\w{1,20}")

_SIGNATURES = {
    codecs.BOM_UTF16_LE: "in UTF-16. Save it as UTF-8: iconv -f UTF-16 -t UTF-8",
    codecs.BOM_UTF16_BE: "in UTF-16. Save it as UTF-8: iconv -f UTF-16 -t UTF-8",
    b"\x1f\x8b": "compressed by gzip. Let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd. Let its name end in .zst",
    b"BZh": "compressed by bzip2. Let its name end in .bz2",
    b"\xfd7zXZ\x00": "compressed by xz. Let its name end in .xz",
    b"PK\x03\x04": "a zip archive. Unpack it, or let its name end in .xlsx if it is a workbook",
    b"\xd0\xcf\x11\xe0": "an old Office document. Save it as text or CSV in UTF-8",
    b"PAR1": "a Parquet file. Let its name end in .parquet",
    b"%PDF": "a PDF. Save it as text or CSV in UTF-8",
}
"""The first bytes of files that are often mistaken for text, and what to do with them."""


def check_encoding(name: str) -> str:
    """``name``, if Python has an encoding of this name whose lines end with the byte of a line feed.

    Every spelling of UTF-8, such as ``utf8`` and ``utf-8-sig``, becomes ``UTF_8``, with which a byte order mark is left
    out.
    """
    try:
        if codecs.lookup(name).name in _UTF_8_NAMES:
            return UTF_8
        if "\na".encode(name) == b"\na":
            return name
    except (LookupError, ValueError) as error:
        raise usage_error(f"no encoding is called {name}. Give one such as cp1252, cp1251 or shift_jis.") from error
    raise usage_error(f"--encoding {name} is not supported. Convert the file: iconv -f {name} -t UTF-8")


def refuse_other_formats(path: Path, start: bytes) -> None:
    """Raise a data error if a file that begins with ``start`` is none of text."""
    for signature, what in _SIGNATURES.items():
        if start.startswith(signature):
            raise data_error(f"{path} is {what}.")


def is_utf8_after_all(line: bytes, encoding: str) -> bool:
    """Whether a line that is to be read in an ``encoding`` of one byte per character is UTF-8 with characters beyond
    ASCII.

    In Windows-1252 each of them reads as a pair such as A with a tilde and a quarter, which no text has three times. An
    encoding of several bytes for a character has lines that are both.
    """
    if line.isascii() or not _has_one_byte_per_character(encoding):
        return False
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return False
    return sum(not character.isascii() for character in text) >= _FEWEST_OF_UTF_8


@cache
def _has_one_byte_per_character(encoding: str) -> bool:
    return len(b"\xc3\xbc".decode(encoding, "replace")) == 2


def guess_encoding(content: bytes, at: int) -> tuple[str, str] | None:
    """(encoding, a word as it reads in it) for bytes that are not UTF-8 from ``at`` on; None if that cannot be told.

    Only the Western one can be told, in which a letter beyond ASCII is among ASCII letters.
    """
    nearby = content[max(0, at - 20) : at + 20]
    if _MANY_BYTES.search(nearby):
        return None
    try:
        before, after = content[max(0, at - 20) : at].decode(_WESTERN), content[at : at + 20].decode(_WESTERN)
    except UnicodeDecodeError:
        return None
    words = (match for match in _LETTERS.finditer(before + after) if match.start() <= len(before) < match.end())
    word = next((match[0] for match in words), after[:1])
    return _WESTERN, word


def advise_on_conversion(content: bytes, at: int) -> str:
    """What bytes that are not UTF-8 may be, and how to convert their file, to be put after ``is not UTF-8``."""
    guess = guess_encoding(content, at)
    name, seen = ("OLD", "") if guess is None else (guess[0], f'; it reads as Windows-1252 ("{guess[1]}")')
    return f"{seen}. Convert the file (iconv -f {name} -t UTF-8)"
