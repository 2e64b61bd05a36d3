"""Results on stdout: lines for a person, JSON for a machine."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from bertkit import config


def show_lines(lines: Iterable[str]) -> None:
    """Each on its own line."""
    for line in lines:
        sys.stdout.write(line + "\n")


def show_json(result: Any) -> None:
    """A record, or a list of them, as one JSON document."""
    show_lines([json.dumps(config.to_json(result), indent=2, ensure_ascii=False)])


def show_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell, numbers to the right."""
    cells = [[str(cell) for cell in header], *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(header))]
    for row in cells:
        padded = (
            cell.rjust(width) if _is_number(cell) else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        show_lines(["  ".join(padded).rstrip()])


def spell(*words: object) -> str:
    """A command as it has to be typed."""
    return shlex.join(str(word) for word in words)


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace(",", "").lstrip("-").isdecimal()
