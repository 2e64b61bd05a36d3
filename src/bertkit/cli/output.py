"""Results on stdout: lines for a person, JSON for a machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from bertkit import config
from bertkit.metrics.classification import ClassScore


def show_lines(lines: Iterable[str]) -> None:
    """Each on its own line."""
    for line in lines:
        sys.stdout.write(line + "\n")


def show_json(result: Any) -> None:
    """A record, or a list of them, as one JSON document."""
    show_lines([json.dumps(config.to_json(result), indent=2, ensure_ascii=False)])


def show_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell, numbers and what stands above them to the right."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [len(cells) > 0 and all(map(_is_number, column[1:])) for column in columns]
    for row in [header, *cells]:
        padded = [
            cell.rjust(width) if is_right or _is_number(cell) else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        show_lines(["  ".join(padded).rstrip()])


def show_parts(parts: Sequence[ClassScore]) -> None:
    """The types of entities, or the labels of which several apply, one below the other; nothing if there are none."""
    if parts:
        rows = [(each.name, each.precision, each.recall, each.f1, each.support) for each in parts]
        show_table(("type", "precision", "recall", "f1", "count"), rows)


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdecimal()
