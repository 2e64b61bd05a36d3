"""Lines of a text file, plain or compressed, or of a workbook, each checked before it is used."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path

from bertkit.errors import BertkitError, data_error
from bertkit.formats.compression import ByteStream
from bertkit.formats.encodings import (
    UTF_8,
    advise_on_conversion,
    guess_encoding,
    is_utf8_after_all,
    refuse_other_formats,
)
from bertkit.formats.workbooks import is_workbook, workbook_lines
from bertkit.storage.suffixes import suffix_of

_LONGEST_LINE = 16_000_000
"""Bytes; a file without line ends is refused before it fills the memory."""

_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.02
"""The share of control characters in text in any 8-bit encoding; of random bytes they are a tenth."""

_WITHOUT_LINES = (".json", ".parquet")


def at_line(path: Path, line: int) -> str:
    """``reviews.csv, line 4,182``, which begins every error about a line."""
    return f"{path}, line {line:,}"


def at_row(path: Path, number: int) -> str:
    """The same for a row of a table: ``reviews.parquet, row 4,182`` where lines do not count the rows."""
    return f"{path}, row {number:,}" if _counts_rows(path) else at_line(path, number)


@lru_cache
def _counts_rows(path: Path) -> bool:
    """Asked for every row of a table: without the cache that is 70 % of the time of reading one."""
    return path.is_dir() or suffix_of(path) in _WITHOUT_LINES


@contextmanager
def open_lines(path: Path, encoding: str | None = None) -> Iterator[Iterator[str]]:
    """The lines of a file with their ends, without a byte order mark.

    ``encoding`` is what the user may name; None is UTF-8 in a command without that option.
    Only a line feed ends a line: U+2028 and the like are characters of the text.
    """
    if not path.exists():
        raise data_error(f"{path} does not exist.")
    with closing(iter(ByteStream(path))) as blocks:
        yield decode_lines(path, blocks, encoding)


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


def decode_lines(path: Path, blocks: Iterable[bytes], encoding: str | None = None) -> Iterator[str]:
    """The lines of ``blocks``, which are read when they are needed; ``path`` names their file in errors."""
    longest = math.inf if suffix_of(path) == ".json" else _LONGEST_LINE  # JSON is read as a whole anyway
    number, held, size = 1, list[bytes](), 0
    for block in blocks:
        first, *others = block.split(b"\n")
        held.append(first)
        size += len(first)
        for line in others:
            yield _decode(path, number, b"".join([*held, b"\n"]), encoding)
            number, held, size = number + 1, [line], len(line)
        if size > longest:
            raise data_error(f"{at_line(path, number)}: more than {longest:,} bytes without a line end.")
    if size:
        yield _decode(path, number, b"".join(held), encoding)


def _decode(path: Path, number: int, line: bytes, encoding: str | None) -> str:
    if number == 1:
        refuse_other_formats(path, line)
    name = encoding or UTF_8
    if name != UTF_8 and is_utf8_after_all(line, name):
        other = f"and not {name.upper()}: leave out --encoding, or save all lines of all files in one encoding"
        raise data_error(f"{at_line(path, number)} is UTF-8 {other}.")
    try:
        text = line.decode("utf-8-sig" if number == 1 and name == UTF_8 else name)
    except UnicodeDecodeError as error:
        if len(_CONTROLS.findall(line)) > _MOST_CONTROLS * len(line):
            raise data_error(f"{path} is not text.") from error
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
