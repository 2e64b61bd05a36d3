"""Words and their tags in columns, as in the files of CoNLL: a word per line, an empty line between sentences.

Before the first word of a sentence there may be comments: lines that begin with # and a space, as ``# text = A tree.``
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bertkit.errors import count_of, data_error
from bertkit.formats.lines import at_line, open_lines
from bertkit.storage.suffixes import TAG_COLUMNS, suffix_of
from bertkit.task_files.files import Columns

COLUMNS = Columns(first="word", label="tag")
"""The first and the last column of a line."""

_TAG = re.compile(r"O|[BIESLU](-\S+)?")
_DOCUMENT = "-DOCSTART-"
_COMMENT = re.compile("#+ ")
_SAMPLE_LINES = 50


@dataclass(frozen=True, slots=True)
class Sentence:
    """``lines`` are those of the words in the file, or of a row without words; ``tags`` are as in the file.

    ``tags`` are () where they are not known. ``id`` is empty where the file has none, and ``source`` is the text that
    the words were split from, if there is one. ``widened`` of its entities begin or end inside of a word there.
    """

    lines: Sequence[int]
    document: int
    words: tuple[str, ...]
    tags: tuple[str, ...]
    id: str = ""
    source: str | None = None
    widened: int = 0


def is_tag(text: str) -> bool:
    """Whether a text is a tag of IOB1, IOB2, BIOES or BILOU."""
    return _TAG.fullmatch(text) is not None


def require_tag(text: str, where: str) -> None:
    """Raise a data error for what is no tag; ``where`` is its place."""
    if not is_tag(text):
        raise data_error(f'{where}: "{text}" is not a tag, such as O, B-TYPE or I.')


def read_columns(path: Path, *, tagged: bool = True) -> Iterator[Sentence]:
    """The sentences of a file; a line with another number of columns than the first, or without a tag, is an error."""
    rows: list[list[str]] = []
    first = document = width = number = 0
    with open_lines(path) as lines:
        for number, line in enumerate(lines, start=1):
            cells = _cells(line)
            if not cells or cells[0] == _DOCUMENT:
                if rows:
                    yield _sentence(first, document, rows, tagged)
                rows = []
                document += bool(cells)
                continue
            if not rows and _is_comment(line, cells):
                continue
            width = width or len(cells)
            if len(cells) != width:
                columns = f"{count_of(len(cells), 'column')}, and {width} in the lines before"
                raise data_error(f"{at_line(path, number)}: {columns}. Fix the line.")
            if tagged and len(cells) == 1:
                problem = f'"{cells[0]}" is one column. Write a tab or a space between a word and its tag.'
                raise data_error(f"{at_line(path, number)}: {problem}")
            if tagged:
                require_tag(cells[-1], at_line(path, number))
            first = first if rows else number
            rows.append(cells)
    if rows:
        yield _sentence(first, document, rows, tagged)


def is_conll(path: Path) -> bool:
    """Whether a file has columns of words and tags by the end of its name."""
    return suffix_of(path) in TAG_COLUMNS


def has_tag_columns(path: Path, encoding: str | None = None) -> bool:
    """Whether a file has words with tags, by the end of its name or by its first lines."""
    if not path.is_file():
        return False
    if is_conll(path):
        return True
    with open_lines(path, encoding) as lines:
        rows = [
            cells for line in islice(lines, _SAMPLE_LINES) if (cells := _cells(line)) and not _is_comment(line, cells)
        ]
    rows = [cells for cells in rows if cells[0] != _DOCUMENT]
    return bool(rows) and all(len(cells) > 1 and is_tag(cells[-1]) for cells in rows)


def _is_comment(line: str, cells: Sequence[str]) -> bool:
    """Whether a line before the first word of a sentence is a comment; ``# O`` is a word with its tag."""
    return _COMMENT.match(line) is not None and not is_tag(cells[-1])


def _cells(line: str) -> list[str]:
    """The columns of a line, which tabs separate if there are any. A no-break space may be part of a word, or one."""
    line = line.rstrip("\r\n")
    if "\t" in line.rstrip(" \t"):
        return [cell.strip(" ") for cell in line.split("\t")]
    return [cell for cell in re.split("[ \t]+", line) if cell]


def _sentence(first: int, document: int, rows: list[list[str]], tagged: bool) -> Sentence:
    tags = tuple(cells[-1] for cells in rows) if tagged else ()
    return Sentence(range(first, first + len(rows)), document, tuple(cells[0] for cells in rows), tags)
