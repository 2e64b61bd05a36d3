"""The labels in a column of a user's file: which classes there are, and which of them are likely typos."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import data_error, list_names, usage_error
from bertkit.formats.cells import parse_number, spell_cell
from bertkit.formats.lines import at_row
from bertkit.storage.json_text import parse_list
from bertkit.task_files.files import Cells

_RARE = 50
"""A label is rare beside one that occurs this many times as often, or three times where it occurs once."""

_EXACT = 2.0**53
"""Smaller whole numbers differ as floats."""

SEPARATORS = (";", "|", ",")

_SHOWN_LABELS = 12

_WRITE_LISTS = 'Write ["one", "two"]; cells that are one class each are --kind classes.'

_JOINERS = "\u200c\u200d"
"""They are invisible, but change words of some scripts, and emoji."""

_SHORTEST_TYPO = 4
"""Characters; shorter labels such as ``en`` and ``es`` may differ in one letter on purpose."""


class Labels(NamedTuple):
    """How often each label occurs, and where it was seen first; rows without a label are not counted."""

    counts: Counter[str]
    first_seen: dict[str, tuple[Path, int]]


def collect_labels(rows: Iterable[Cells]) -> Labels:
    """Count the labels of all rows."""
    counts: Counter[str] = Counter()
    first_seen: dict[str, tuple[Path, int]] = {}
    for cells in rows:
        if cells.label:
            counts[cells.label] += 1
            first_seen.setdefault(cells.label, (cells.path, cells.line))
    return Labels(counts, first_seen)


def find_separator(labels: Labels) -> str | None:
    """The separator between the labels in a cell; None if every cell is one label.

    Cells hold several labels if all are JSON lists, if one is ``[]``, or if splitting them at a separator gives fewer
    different parts than there are different cells: ``a``, ``b;c``, ``c`` and ``a;b`` are three labels, but
    ``Arts; music`` is one.
    """
    if labels.counts and all(label.startswith("[") for label in labels.counts):
        return SEPARATORS[0]
    if "[]" in labels.counts:
        return next((mark for mark in SEPARATORS if any(mark in label for label in labels.counts)), SEPARATORS[0])
    cells = {label.casefold() for label in labels.counts}  # one label in another case hides no separator
    for mark in SEPARATORS:
        parts = {part.strip() for cell in cells for part in cell.split(mark)}
        if len(parts) < len(cells):
            return mark
    return None


def may_hold_several(labels: Labels) -> bool:
    """Whether cells, split at a separator, have a part in common, as ``bad`` and ``bad;dull`` have."""
    for mark in SEPARATORS:
        parts = [part for cell in labels.counts for part in {part.strip() for part in cell.split(mark)}]
        if len(set(parts)) < len(parts):
            return True
    return False


def split_cells(labels: Labels, separator: str) -> Labels:
    """The single labels in cells that hold several, with the row in which each was seen first."""
    cells = {cell: read_labels(cell, separator, at_row(*labels.first_seen[cell])) for cell in labels.counts}
    return _regroup(labels, {cell: dict.fromkeys(names) for cell, names in cells.items()})


def read_labels(cell: str, separator: str, where: str) -> list[str]:
    """The labels in a cell: a JSON list, or the parts between separators."""
    if cell.startswith("["):
        try:
            names = parse_list(cell)
        except ValueError as error:
            raise data_error(f"{where}: {cell[:99]} is not a list of labels ({error}). {_WRITE_LISTS}") from error
        if not isinstance(names, list) or not all(isinstance(name, str | int | float) for name in names):
            raise data_error(f"{where}: {cell[:99]} is not a list of labels. {_WRITE_LISTS}")
        return [name for each in names if (name := spell_cell(each).strip())]
    return [name for part in cell.split(separator) if (name := part.strip())]


def write_labels(names: Sequence[str], separator: str) -> str:
    """The cell that ``read_labels`` reads as these labels; JSON if a label contains the separator."""
    if not names or any(separator in name or name.startswith("[") for name in names):
        return json.dumps(list(names), ensure_ascii=False)
    return separator.join(names)


def list_labels(labels: Sequence[str]) -> str:
    """The first labels with commas, and how many more there are, for an error."""
    return list_names(labels, _SHOWN_LABELS)


def check_labels(task: str, labels: Sequence[str], spellings: Sequence[str] = ()) -> None:
    """Raise a usage error for two classes of one name, one of which would be lost, or for a class without a spelling.

    Answers are stored by name. No ``spellings`` are those of the names.
    """
    if spellings and len(spellings) != len(labels):
        raise usage_error(f"{task} has {len(labels)} labels and {len(spellings)} spellings. Each label needs one.")
    if len(set(labels)) < len(labels):
        raise usage_error(f'{task} has two labels named "{max(labels, key=labels.count)}". Each needs its own name.')


def check_spelling(labels: Labels) -> None:
    """Raise an error for a label that is likely a typo of another one; it names the first row with it.

    Labels that differ only in case, spacing, invisible characters or the way to write a number (1 and 1.0) are never
    two classes. Labels that differ in one letter, or in two swapped letters, are two classes unless one is rare.
    """
    commonest_first = [label for label, _ in labels.counts.most_common()]
    for suspect, known in [*_same_when_normalized(commonest_first), *_one_typo_away(commonest_first)]:
        path, line = labels.first_seen[suspect]
        if _plain(suspect) == _plain(known):
            raise data_error(f"{at_row(path, line)}: {_describe_spellings(labels, known)}")
        if _is_rare(labels.counts[suspect], labels.counts[known]):
            raise data_error(
                f'{at_row(path, line)}: label "{suspect}" occurs {_times(labels.counts[suspect])}; '
                f'"{known}" occurs {_times(labels.counts[known])}. '
                "Fix the row, or keep it as a class of its own with --allow-rare-labels."
            )


def merge_spellings(labels: Labels) -> Labels:
    """The labels with those that differ in case, spacing or the way to write a number as one: the most common one."""
    commonest: dict[str, str] = {}
    return _regroup(
        labels, {label: {commonest.setdefault(_plain(label), label)} for label, _ in labels.counts.most_common()}
    )


def _regroup(labels: Labels, parts: Mapping[str, Collection[str]]) -> Labels:
    """How often each of the ``parts`` of the labels occurs, and where it was seen first."""
    counts: Counter[str] = Counter()
    first_seen: dict[str, tuple[Path, int]] = {}
    for label, found in parts.items():
        place = labels.first_seen[label]
        for part in found:
            counts[part] += labels.counts[label]
            first_seen[part] = min(first_seen.get(part, place), place)
    return Labels(counts, first_seen)


def fold_label(label: str, known: Sequence[str]) -> str:
    """The known label that is another spelling of ``label``, as 1 is of 1.0; ``label`` itself if there is none."""
    return label if label in known else next((each for each in known if _plain(each) == _plain(label)), label)


def varies_by_format(label: str) -> bool:
    """Whether a label is a number or a truth value, which each format of tables spells in its own way: 1 and 1.0, true
    and TRUE."""
    return _number(label) is not None or label.strip().casefold() in ("true", "false")


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether every label reads as a number."""
    return all(_number(label) is not None for label in labels)


def are_whole_numbers(labels: Iterable[str]) -> bool:
    """Whether every label reads as a number without a fraction."""
    return all((number := _number(label)) is not None and number == int(number) for label in labels)


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Numbers by size, words in alphabetical order."""
    known = sorted(labels)
    return tuple(sorted(known, key=float)) if are_numbers(known) else tuple(known)


def _number(label: str) -> float | None:
    try:
        number = parse_number(label)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _plain(label: str) -> str:
    """A label without case, spacing, invisible characters, Unicode's forms, and other ways to write its number."""
    number = _number(label)
    if number is None:
        visible = "".join(letter for letter in label if letter in _JOINERS or unicodedata.category(letter) != "Cf")
        return " ".join(unicodedata.normalize("NFKC", visible).casefold().split())
    # Numbers of more than 15 digits may be equal as floats; as classes they are ids.
    return repr(number) if abs(number) < _EXACT or not label.strip().isdecimal() else str(int(label))


def _same_when_normalized(labels: list[str]) -> Iterator[tuple[str, str]]:
    first: dict[str, str] = {}
    for label in labels:
        known = first.setdefault(_plain(label), label)
        if known != label:
            yield label, known


def _one_typo_away(labels: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs in which one letter is missing, added or wrong, or two are swapped: equal without one letter each."""
    first: dict[str, str] = {}
    for label in labels:
        if len(label) < _SHORTEST_TYPO or any(letter.isdigit() for letter in label):
            continue
        remains = {label, *(label[:place] + label[place + 1 :] for place in range(len(label)))}
        for remain in sorted(remains):
            known = first.setdefault(remain, label)
            if known != label:
                yield label, known


def _describe_spellings(labels: Labels, known: str) -> str:
    spellings = [label for label, _ in labels.counts.most_common() if _plain(label) == _plain(known)]
    counts = ", ".join(f'"{label}" {_times(labels.counts[label])}' for label in spellings)
    return (
        f"{len(spellings)} spellings of one label ({counts}). --fold-labels treats them as one; --allow-rare-labels "
        "keeps them apart."
    )


def _is_rare(count: int, other: int) -> bool:
    return count * _RARE <= other or (count == 1 and other >= 3)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
