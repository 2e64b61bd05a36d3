"""Tables for Markdown and for the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import IO, Protocol, cast, runtime_checkable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bertkit.escaping import printable, to_markdown
from bertkit.scores import UNDEFINED, format_score

_UNLIMITED_WIDTH = 100_000
"""Columns of a page that never wraps a line: text that another program reads keeps one row per line."""


_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]\d+)?")
_NO_NUMBER = ("-", format_score(UNDEFINED))
"""What is shown in place of a number that is missing or undefined."""


@runtime_checkable
class TextOutput(Protocol):
    """What a table is printed to: stdout, or text in memory."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write lines, which end with their newlines."""


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], output: TextOutput) -> None:
    """Write a table to ``output``; columns of numbers are aligned to the right, and floats are as ``format_score``.

    On a terminal it is fitted to the width of the window. Elsewhere it is plain text: columns separated by two spaces,
    one line per row, no colour and no rules.
    """
    cells = [[format_score(cell) if isinstance(cell, float) else printable(str(cell)) for cell in row] for row in rows]
    on_terminal = output.isatty()
    table = Table(
        box=box.SIMPLE_HEAD if on_terminal else None,
        padding=(0, 1) if on_terminal else (0, 2, 0, 0),
        pad_edge=False,
        header_style="bold" if on_terminal else "",
    )
    for place, name in enumerate(header):
        table.add_column(Text(printable(name)), justify="right" if _has_numbers(cells, place) else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    if on_terminal:
        Console(file=cast(IO[str], output), highlight=False).print(table)
        return
    page = io.StringIO()
    Console(file=page, width=_UNLIMITED_WIDTH, color_system=None, force_terminal=False).print(table)
    output.writelines(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with aligned columns, those of numbers to the right; markup in a cell is escaped."""
    cells = [[_format_cell(cell) for cell in row] for row in rows]
    texts = [[to_markdown(name) for name in header], *cells]
    assert all(len(row) == len(header) for row in texts), "all rows of a table need as many cells as its header"
    widths = [max(3, *(len(row[place]) for row in texts)) for place in range(len(header))]
    right = [_has_numbers(cells, place) for place in range(len(header))]
    rule = [
        ("-" * (width - 1) + ":") if is_right else "-" * width for width, is_right in zip(widths, right, strict=True)
    ]
    return "\n".join(_line(row, widths, right) for row in [texts[0], rule, *texts[1:]]) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return f"| {' | '.join(padded)} |"


def _format_cell(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return to_markdown(cell if isinstance(cell, str) else str(cell))
    return f"{cell:,}" if isinstance(cell, int) else format_score(cell)


def _has_numbers(cells: Sequence[Sequence[str]], place: int) -> bool:
    """Whether a column has numbers only, some of which may be missing or undefined."""
    return bool(cells) and all(_is_number(row[place]) or row[place] in _NO_NUMBER for row in cells)


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None
