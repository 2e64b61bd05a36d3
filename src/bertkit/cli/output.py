"""Results on stdout: lines for a person, JSON for a machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bertkit.config.records import to_plain
from bertkit.escaping import printable, to_json
from bertkit.report.tables import print_table

if TYPE_CHECKING:  # scikit-learn, which scores the classes, takes half a second to load
    from bertkit.metrics.classification import ClassScore


def show_lines(lines: Iterable[str]) -> None:
    """Print each on its own line."""
    for line in lines:
        sys.stdout.write(printable(line) + "\n")


def show_json(result: object) -> None:
    """Print a record, or a list of records, as one JSON document."""
    sys.stdout.write(to_json(to_plain(result), indent=2) + "\n")


def show_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table that fits the terminal, or plain aligned columns if stdout is not a terminal."""
    print_table(header, rows, sys.stdout)


def show_parts(parts: Sequence[ClassScore]) -> None:
    """Print the scores of each entity type, or of each label of a multi-label task; nothing if there are none."""
    if parts:
        rows = [(each.name, each.precision, each.recall, each.f1, each.support) for each in parts]
        show_table(("type", "precision", "recall", "f1", "count"), rows)
