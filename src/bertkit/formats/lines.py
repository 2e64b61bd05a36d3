"""Lines of a UTF-8 text file, plain or ``.gz``, or of a workbook, each checked before it is used."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import chain
from pathlib import Path

from bertkit.errors import BertkitError, data_error
from bertkit.formats.compression import expansion_error, most_unpacked, suffix_of
from bertkit.formats.encodings import UTF_8, advise_on_conversion, guess_encoding
from bertkit.formats.workbooks import is_workbook, workbook_lines

_LONGEST_LINE = 16_000_000
"""Bytes; a file without line ends is refused before it fills the memory."""

_OTHER_FORMATS = (
    (b"PK\x03\x04", "an Excel workbook or another zip file. Let its name end with .xlsx, or save it as CSV in UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook. Save it as CSV in UTF-8"),
    (b"PAR1", "a Parquet file. Let its name end with .parquet"),
    (b"\x1f\x8b", "compressed by gzip. Let its name end with .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd. Unpack it, or compress it by gzip"),
    (b"BZh", "compressed by bzip2. Unpack it, or compress it by gzip"),
    (b"\xfd7zXZ\x00", "compressed by xz. Unpack it, or compress it by gzip"),
    (b"%PDF", "a PDF. Save its table as CSV in UTF-8"),
    (b"\xff\xfe", "in UTF-16. Save it as UTF-8"),
    (b"\xfe\xff", "in UTF-16. Save it as UTF-8"),
)
"""The first bytes of files that are often mistaken for text, and what to do with them."""


_WITHOUT_LINES = (".json", ".parquet", ".arrow")


def at_line(path: Path, line: int) -> str:
    """``reviews.csv, line 4,182``, which begins every error about a line."""
    return f"{path}, line {line:,}"


def at_row(path: Path, number: int) -> str:
    """The same for a row of a table: ``reviews.parquet, row 4,182`` where lines do not count the rows."""
    return f"{path}, row {number:,}" if path.is_dir() or suffix_of(path) in _WITHOUT_LINES else at_line(path, number)


@contextmanager
def open_lines(path: Path, encoding: str | None = None) -> Iterator[Iterator[str]]:
    """The lines of a file with their ends, without a byte order mark.

    ``encoding`` is what the user may name; None is UTF-8 in a command without that option.
    Only a line feed ends a line: U+2028 and the like are characters of the text.
    """
    try:
        file: BufferedIOBase = gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # noqa: SIM115
    except FileNotFoundError as error:
        raise data_error(f"{path} does not exist.") from error
    except OSError as error:
        raise data_error(f"{path} cannot be read: {error.strerror}.") from error
    with file:
        yield decode_lines(path, file, encoding)


class Lines:
    """The lines of a file, which is opened once for looking at its beginning and for the first complete reading.

    ``peek`` keeps what it reads, and ``read`` continues from there. Every further reading opens the file again.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = path
        self.encoding = encoding
        self._head: list[str] = []
        self._rest: Iterator[str] | None = None

    def peek(self) -> Iterator[str]:
        """The lines from the first on, as long as the caller asks for more."""
        number = 0
        while True:
            if number == len(self._head):
                line = self._next()
                if line is None:
                    return
                self._head.append(line)
            yield self._head[number]
            number += 1

    def read(self) -> Iterator[str]:
        """All lines, one at a time; none of them is kept."""
        head, rest = self._head, self._rest
        self._head, self._rest = [], None
        return chain(head, _all_lines(self.path, self.encoding) if rest is None else rest)

    def _next(self) -> str | None:
        if self._rest is None:
            self._rest = _all_lines(self.path, self.encoding)
        try:
            return next(self._rest, None)
        except BertkitError:
            # A generator that has raised is exhausted: without this, a second look would see a file that ends here.
            self._head, self._rest = [], None
            raise


def _all_lines(path: Path, encoding: str | None) -> Iterator[str]:
    if is_workbook(path):
        yield from workbook_lines(path)
        return
    with open_lines(path, encoding) as lines:
        yield from lines


def decode_lines(path: Path, file: BufferedIOBase, encoding: str | None = None) -> Iterator[str]:
    """The lines of an open ``file``, each read when it is asked for; ``path`` names it in errors."""
    number = size = 0
    try:
        most = most_unpacked(path) if isinstance(file, gzip.GzipFile) else math.inf
        longest = most + 1 if suffix_of(path) == ".json" else _LONGEST_LINE  # JSON is read as a whole anyway
        while line := file.readline(-1 if longest == math.inf else int(longest)):
            number, size = number + 1, size + len(line)
            if size > most:
                raise expansion_error(path)
            if len(line) == longest:
                raise data_error(f"{at_line(path, number)}: more than {longest:,} bytes without a line end.")
            yield _decode(path, number, line, encoding)
    except (OSError, EOFError, zlib.error) as error:
        raise data_error(f"{at_line(path, number + 1)}: cannot be read ({error}). The file is damaged.") from error


def _decode(path: Path, number: int, line: bytes, encoding: str | None) -> str:
    known = next((kind for start, kind in _OTHER_FORMATS if line.startswith(start)), None) if number == 1 else None
    if known is not None:
        raise data_error(f"{path} is {known}.")
    name = encoding or UTF_8
    try:
        text = line.decode("utf-8-sig" if number == 1 and name == UTF_8 else name)
    except UnicodeDecodeError as error:
        place = f"{at_line(path, number)}: byte {error.start + 1:,} of the line"
        raise data_error(f"{place} is not {name.upper()}{_advise_on_encoding(line, error.start, encoding)}") from error
    if "\0" in text:
        raise data_error(f"{at_line(path, number)}: a NUL character. The file is damaged, or is not UTF-8 text.")
    return text


def _advise_on_encoding(line: bytes, at: int, encoding: str | None) -> str:
    """The end of the error about a byte that cannot be decoded: what it may be, and what to do."""
    if encoding is None:
        return f"{advise_on_conversion(line, at)}."
    guess = guess_encoding(line, at) if encoding == UTF_8 else None
    if guess is None:
        return ". Name the encoding of the file, such as --encoding cp1251, or save it as UTF-8."
    name, word = guess
    return f'; it reads as Windows-1252 ("{word}"): --encoding {name}, or in a spreadsheet: Save as, "CSV UTF-8".'
