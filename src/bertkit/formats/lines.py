"""Lines of a UTF-8 text file, plain or ``.gz``, each checked before anything is made of it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from bertkit.errors import data_error

_LONGEST_LINE = 16_000_000
"""Bytes; a file without line ends is refused before it fills the memory."""

_NO_TEXT = (
    (b"PK\x03\x04", "an Excel workbook or another zip file. Save it as CSV in UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook of old. Save it as CSV in UTF-8"),
    (b"PAR1", "a Parquet file. Let its name end with .parquet"),
    (b"\x1f\x8b", "compressed by gzip. Let its name end with .gz"),
    (b"\xff\xfe", "in UTF-16. Save it as UTF-8"),
    (b"\xfe\xff", "in UTF-16. Save it as UTF-8"),
)
"""How files begin that are often taken for text, and what to do with them."""


def at_line(path: Path, line: int) -> str:
    """``reviews.csv, line 4,182``, the head of every complaint about a row."""
    return f"{path}, line {line:,}"


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a file with their ends, without a byte order mark.

    Only a line feed ends a line: U+2028 and the like are characters of the text.
    """
    try:
        file: BufferedIOBase = gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
    except FileNotFoundError as error:
        raise data_error(f"{path} does not exist.") from error
    except OSError as error:
        raise data_error(f"{path} cannot be read: {error.strerror}.") from error
    with file:
        yield _decoded(path, file)


def _decoded(path: Path, file: BufferedIOBase) -> Iterator[str]:
    number = 0
    try:
        while line := file.readline(_LONGEST_LINE):
            number += 1
            yield _decode(path, number, line)
    except (OSError, EOFError) as error:
        raise data_error(f"{at_line(path, number + 1)}: cannot be read ({error}). The file is damaged.") from error


def _decode(path: Path, number: int, line: bytes) -> str:
    if len(line) == _LONGEST_LINE:
        raise data_error(f"{at_line(path, number)}: more than {_LONGEST_LINE:,} bytes without a line end.")
    known = next((kind for start, kind in _NO_TEXT if line.startswith(start)), None) if number == 1 else None
    if known is not None:
        raise data_error(f"{path} is {known}.")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1:,} of the line"
        raise data_error(f"{at_line(path, number)}: {place} is not UTF-8. Save the file as UTF-8.") from error
    if "\0" in text:
        raise data_error(f"{at_line(path, number)}: a NUL character. The file is damaged, or is not UTF-8 text.")
    return text
