"""The label column of the user's file: which classes there are, and which of them are slips of the keyboard."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import data_error
from bertkit.formats.lines import at_line
from bertkit.task_types.task_files import Cells

_RARE = 50
"""A label is rare beside another that occurs this many times as often, or three times to its once."""

SEPARATORS = (";", "|", ",")

_SHORTEST_TYPO = 4
"""Characters; shorter labels (``en``, ``es``, ``pos``) differ by one letter on purpose."""


class Labels(NamedTuple):
    """The labels that occur: how often, and where each was seen first. Unlabelled rows are not counted."""

    counts: Counter[str]
    first_seen: dict[str, tuple[Path, int]]


def count_labels(rows: Iterable[Cells]) -> Labels:
    """Go through all rows once."""
    counts: Counter[str] = Counter()
    first_seen: dict[str, tuple[Path, int]] = {}
    for cells in rows:
        if cells.label:
            counts[cells.label] += 1
            first_seen.setdefault(cells.label, (cells.path, cells.line))
    return Labels(counts, first_seen)


def find_separator(labels: Labels) -> str | None:
    """What stands between the labels where a cell holds several of them; None where every cell is one label.

    Cells hold several if all are JSON lists or one is ``[]``, or if cut at a mark they are made of fewer different
    parts than there are different cells: ``a``, ``b;c``, ``c`` and ``a;b`` are three labels, ``Arts; music`` is one.
    """
    if labels.counts and all(label.startswith("[") for label in labels.counts):
        return SEPARATORS[0]
    if "[]" in labels.counts:
        return next((mark for mark in SEPARATORS if any(mark in label for label in labels.counts)), SEPARATORS[0])
    for mark in SEPARATORS:
        parts = {part.strip() for label in labels.counts for part in label.split(mark)}
        if len(parts) < len(labels.counts):
            return mark
    return None


def may_hold_several(labels: Labels) -> bool:
    """Whether some cells, cut at a mark, have a part in common: ``bad``, ``bad;dull``, ``fine`` and ``fine;long``."""
    for mark in SEPARATORS:
        parts = [part for cell in labels.counts for part in {part.strip() for part in cell.split(mark)}]
        if len(set(parts)) < len(parts):
            return True
    return False


def split_cells(labels: Labels, separator: str) -> Labels:
    """The labels in cells that hold several, with the cells in which each was seen first."""
    counts: Counter[str] = Counter()
    first_seen: dict[str, tuple[Path, int]] = {}
    for cell, count in labels.counts.items():
        path, line = labels.first_seen[cell]
        for label in set(read_labels(cell, separator, at_line(path, line))):
            counts[label] += count
            first_seen[label] = min(first_seen.get(label, (path, line)), (path, line))
    return Labels(counts, first_seen)


def read_labels(cell: str, separator: str, where: str) -> list[str]:
    """The names in a cell: a JSON list, or what is between the separators."""
    if cell.startswith("["):
        try:
            names = json.loads(cell)
        except ValueError as error:
            raise data_error(f"{where}: {cell} is not a JSON list ({error}).") from error
        return [str(name).strip() for name in names]
    return [name for part in cell.split(separator) if (name := part.strip())]


def write_labels(names: Sequence[str], separator: str) -> str:
    """The cell that ``read_labels`` reads as these names; JSON where the separator cannot do."""
    if not names or any(separator in name or name.startswith("[") for name in names):
        return json.dumps(list(names), ensure_ascii=False)
    return separator.join(names)


def check_spelling(labels: Labels) -> None:
    """Refuse a label that looks like another one misspelt, naming the first row that has it.

    Two spellings of one label (other case or spacing, 1 and 1.0) are never two classes; a label one slip of the
    keyboard away from another is suspect if it is rare beside it.
    """
    commonest_first = [label for label, _ in labels.counts.most_common()]
    for suspect, known in [*_same_but_spelt_differently(commonest_first), *_one_slip_away(commonest_first)]:
        if _plain(suspect) == _plain(known) or _is_rare(labels.counts[suspect], labels.counts[known]):
            path, line = labels.first_seen[suspect]
            raise data_error(
                f'{at_line(path, line)}: label "{suspect}" occurs {_times(labels.counts[suspect])}; '
                f'"{known}" occurs {_times(labels.counts[known])}. '
                "Fix the row, or keep it as a class of its own with --allow-rare-labels."
            )


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether every label reads as a number."""
    return all(_number(label) is not None for label in labels)


def are_whole_numbers(labels: Iterable[str]) -> bool:
    """Whether every label reads as a number without a fraction."""
    return all((number := _number(label)) is not None and number == int(number) for label in labels)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Numbers by size, words by the alphabet."""
    known = sorted(labels)
    return tuple(sorted(known, key=float)) if are_numbers(known) else tuple(known)


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _plain(label: str) -> str:
    """What is left of a label when case, spacing, ways of writing a number and of encoding a letter are taken away."""
    number = _number(label)
    plain = unicodedata.normalize("NFKC", label).casefold()
    return " ".join(plain.split()) if number is None else repr(number)


def _same_but_spelt_differently(labels: list[str]) -> Iterator[tuple[str, str]]:
    first: dict[str, str] = {}
    for label in labels:
        known = first.setdefault(_plain(label), label)
        if known != label:
            yield label, known


def _one_slip_away(labels: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs that share what is left after taking one letter out: a letter missing, added, wrong, or two swapped."""
    first: dict[str, str] = {}
    for label in labels:
        if len(label) < _SHORTEST_TYPO or any(letter.isdigit() for letter in label):
            continue
        remains = {label, *(label[:place] + label[place + 1 :] for place in range(len(label)))}
        for remain in sorted(remains):
            known = first.setdefault(remain, label)
            if known != label:
                yield label, known


def _is_rare(count: int, beside: int) -> bool:
    return count * _RARE <= beside or (count == 1 and beside >= 3)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
