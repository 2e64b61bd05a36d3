"""Results in words: mean, standard deviation and best over seeds, and tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """Scores of several seeds. ``sd`` is that of a sample (n - 1), None for a single score."""

    mean: float
    sd: float | None
    best: float
    count: int

    def __str__(self) -> str:
        """``0.8123 ± 0.0041 (best 0.8170 of 5)``, or the one score."""
        if self.sd is None:
            return f"{self.mean:.4f}"
        return f"{self.mean:.4f} ± {self.sd:.4f} (best {self.best:.4f} of {self.count})"


def summarise(scores: Sequence[float]) -> Summary:
    """Mean, standard deviation and best of at least one score; higher is better."""
    assert scores, "nothing to summarise"
    sd = statistics.stdev(scores) if len(scores) > 1 else None
    return Summary(mean=statistics.fmean(scores), sd=sd, best=max(scores), count=len(scores))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with aligned columns; numbers stand right, and a ``|`` in a cell is escaped."""
    cells = [[_spell(cell) for cell in row] for row in rows]
    texts = [[_escape(name) for name in header], *cells]
    assert all(len(row) == len(header) for row in texts), "rows of a table have one length"
    widths = [max(3, *(len(row[place]) for row in texts)) for place in range(len(header))]
    right = [bool(cells) and all(_is_number(row[place]) for row in cells) for place in range(len(header))]
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


def _spell(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return _escape(str(cell))
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4f}"


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "", 1).removeprefix("-").isdecimal() or cell == "-"
