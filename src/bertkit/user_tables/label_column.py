"""The label column of a user's table: whether it holds classes, numbers or several labels at once."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.errors import data_error, usage_error
from bertkit.formats.cells import find_decimal_comma
from bertkit.formats.lines import at_row
from bertkit.options.finetuning import LabelKind
from bertkit.task_files.conll_files import is_tag
from bertkit.task_files.files import Columns
from bertkit.task_files.indicators import INDICATORS
from bertkit.task_files.labels import (
    SEPARATORS,
    Labels,
    are_numbers,
    are_whole_numbers,
    find_separator,
    may_hold_several,
    read_labels,
    sort_labels,
    split_cells,
)
from bertkit.task_types.regression import check_number

_MOST_WHOLE_NUMBERS = 20
"""More different whole numbers than this are a quantity and not classes."""

_CLASS_NAMES = ("label", "labels", "gold_label", "class", "category", "intent", "topic", "emotion")
"""Columns of these names have classes even if there are many, where those are counted from 0 or 1."""


_WRITE_POINTS = "Write 1,5 as 1.5 and 1,000 as 1000"

_PERCENTAGE = re.compile(r"[+-]?\d+([.,]\d+)?\s*%")

_CURRENCY = "(?:[$€£¥₹₩]|USD|EUR|GBP|JPY|CHF|CNY|INR|KRW|CAD|AUD)"
_AMOUNT = re.compile(rf"[+-]?{_CURRENCY}\s?\d[\d.,'\s]*|[+-]?\d[\d.,'\s]*{_CURRENCY}")

_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,. '\u2019\u00a0\u202f]\d{3})+(\.\d+)?")

_POINT_BEFORE_THREE = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")

_MISSING = ("nan", "n/a", "#n/a", "<na>", "na", "null")
"""How pandas, R and spreadsheets write a missing value."""

_NOT_FINITE = ("nan", "inf", "infinity")
"""How programs spell a number that is missing or out of range."""

_CLASSES_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class LabelColumn:
    """The label column of train: ``rows`` with a label; ``labels`` are single ones where a cell holds several.

    With ``indicators`` each label has a column of 0 and 1 instead; ``is_one_hot`` says that every row has one label.
    """

    kind: LabelKind
    labels: Labels
    rows: int
    separator: str = SEPARATORS[0]
    indicators: bool = False
    is_one_hot: bool = False


def examine_labels(path: Path, columns: Columns, labels: Labels, kind: LabelKind | None) -> LabelColumn:
    """What the ``labels`` of a table are; ``kind`` replaces the guess. Values that may be either are a data error."""
    if columns.labels:
        return _examine_indicators(columns.labels, labels, kind)
    kind = kind or _guess_kind(path, columns, labels)
    column = LabelColumn(kind=kind, labels=labels, rows=labels.counts.total())
    if kind != "labels":
        return column
    separator = find_separator(labels) or SEPARATORS[0]
    column = replace(column, labels=split_cells(labels, separator), separator=separator)
    _refuse_vectors(path, columns, labels)
    return column


def _examine_indicators(names: tuple[str, ...], labels: Labels, kind: LabelKind | None) -> LabelColumn:
    """Several labels in the columns ``names``; a label that no row has is one, too."""
    if kind not in (None, "labels"):
        raise usage_error(f"several columns of labels are --kind labels, not {kind}.")
    found = split_cells(labels, SEPARATORS[0])
    counts = Counter({name.strip(): found.counts[name.strip()] for name in names})
    return LabelColumn(
        kind="labels",
        labels=found._replace(counts=counts),
        rows=labels.counts.total(),
        indicators=True,
        is_one_hot=all(len(read_labels(cell, SEPARATORS[0], "")) == 1 for cell in labels.counts),
    )


def _guess_kind(path: Path, columns: Columns, labels: Labels) -> LabelKind:
    """A number if all labels are, and some have a fraction or there are many; else classes, or several per cell."""
    distinct = len(labels.counts)
    if labels.counts and are_numbers(labels.counts):
        return "classes" if _may_be_classes(columns, labels) else "number"
    if example := find_decimal_comma(labels.counts):
        raise data_error(
            f'{path}: the values of column "{columns.label}", such as {example}, look '
            f"like numbers with a comma. {_WRITE_POINTS}, or say what they are: --kind classes, or labels for several "
            "per text."
        )
    if labels.counts and all(map(_AMOUNT.fullmatch, labels.counts)):
        raise data_error(
            f'{path}: the values of column "{columns.label}", such as {next(iter(labels.counts))}, look like '
            "amounts of money. Write the numbers alone, such as 1185.06, or say that they are classes (--kind classes)."
        )
    if labels.counts and all(map(_PERCENTAGE.fullmatch, labels.counts)):
        raise data_error(
            f'{path}: the values of column "{columns.label}", such as {next(iter(labels.counts))}, look like per cent. '
            "Write them without the sign, or say that they are classes (--kind classes)."
        )
    grouped = [label for label in labels.counts if _THOUSANDS.fullmatch(label)]
    if grouped and are_numbers(labels.counts.keys() - set(grouped)):
        raise data_error(
            f'{path}: the values of column "{columns.label}", such as {grouped[0]}, look like numbers whose thousands '
            "are set apart. Write them as 1000, or say what they are: --kind classes, or labels for several per text."
        )
    numbers = {label for label in labels.counts if label.lstrip("+-").casefold() not in _NOT_FINITE}
    if numbers and len(numbers) < distinct and are_numbers(numbers):
        return "number"  # the others are reported as errors when they are read
    if find_separator(labels) is not None:
        return "labels"
    if sum(are_numbers([label]) for label in labels.counts) > max(_MOST_WHOLE_NUMBERS, 0.9 * distinct):
        return "number"  # the few that are not numbers are reported as errors when they are read
    if any(label.startswith("B-") for label in labels.counts) and all(map(is_tag, labels.counts)):
        raise data_error(
            f'{path}: column "{columns.label}" has tags of words. Write the words and their tags as a .conll, with an '
            "empty line between sentences, or as lists, tokens and ner_tags, in a .jsonl; or, for words alone, say "
            "that they are classes (--kind classes)."
        )
    if distinct > max(_MOST_WHOLE_NUMBERS, labels.counts.total() // 2):
        raise data_error(
            f'{path}: column "{columns.label}" has {distinct:,} different values in {labels.counts.total():,} rows. '
            "Name the label column (--label COLUMN), or say that these are its classes (--kind classes)."
        )
    return "classes"


def read_numbers(labels: Labels, advice: str) -> list[float]:
    """The numbers of all rows; another label is a data error that ends with ``advice`` unless it has a comma."""
    for label, (path, line) in labels.first_seen.items():
        where = at_row(path, line)
        if not are_numbers([label]):
            what_to_do = _WRITE_POINTS if find_decimal_comma([label]) else advice
            raise data_error(f'{where}: "{label}" is not a number. {what_to_do}.')
        check_number(float(label), label, where)
    return [float(label) for label in labels.counts.elements()]


def _may_be_classes(columns: Columns, labels: Labels) -> bool:
    """Whether numbers may be classes: few whole ones, or numbered without a gap, some of them with several rows."""
    if not are_whole_numbers(labels.counts):
        return False
    distinct = len(labels.counts)
    if distinct <= _MOST_WHOLE_NUMBERS:
        return True
    values = {float(label) for label in labels.counts}
    is_numbered = min(values) in (0, 1) and max(values) - min(values) + 1 == len(values) == distinct
    named = (columns.label or "").casefold() in _CLASS_NAMES
    return named and is_numbered and labels.counts.total() >= 2 * distinct


def _refuse_vectors(path: Path, columns: Columns, labels: Labels) -> None:
    """Raise a data error for lists of 0 and 1, one for each label, which are no names of labels."""
    cells = [read_labels(cell, SEPARATORS[0], "") for cell in labels.counts if cell.startswith("[")]
    lengths = {len(cell) for cell in cells}
    names = {name.casefold() for cell in cells for name in cell}
    if len(cells) == len(labels.counts) and len(lengths) == 1 and lengths != {1} and names <= INDICATORS:
        raise data_error(
            f'{path}: column "{columns.label}" has lists of {lengths.pop()} numbers that are 0 or 1, and not the '
            'names of labels. Write those, such as ["dull", "long"], or a column of 0 and 1 for each label.'
        )


def _find_missing(classes: Collection[str]) -> str | None:
    """The class that is how a missing label may be written, such as the -1 beside 0, 1 and 2 in SNLI; None without one.

    -1, 0 and 1 alone are how a sentiment may be written.
    """
    if "-1" in classes and set(classes) == {str(number) for number in range(-1, len(classes) - 1)} and len(classes) > 3:
        return "-1"
    return next((name for name in classes if name.casefold() in _MISSING), None)


def describe_labels(column: LabelColumn, *, is_text: bool) -> str:
    """The labels in words, with their numbers. ``is_text``: the file has no type for numbers, as CSV has none."""
    counts = column.labels.counts
    if column.kind == "classes":
        doubt = "; if cells hold several: --kind labels" if may_hold_several(column.labels) else ""
        if missing := _find_missing(counts):
            doubt += f'; if "{missing}" means that the label is missing, leave those cells empty'
        return f"{len(counts)} classes: {list_classes(counts)}{doubt}"
    if column.kind == "labels":
        mean = counts.total() / column.rows
        names = list_classes(counts)
        form = "a column of 0 and 1 for each" if column.indicators else f'"{column.separator}" between'
        doubt = "; if they are classes, write the name of each row's class into one column" if column.is_one_hot else ""
        return f"several of {len(counts)} labels, {mean:.1f} per text, {form}: {names}{doubt}"
    values = [float(label) for label in counts.elements()]
    mean = statistics.fmean(values)
    shown = f"{mean:.3g}" if abs(mean) < 1000 else f"{mean:.0f}"
    doubt = ""
    if is_text and (example := _find_thousands(counts)):
        doubt = f"; if {example} is {example.replace('.', '')}, write it so: the point is read as a decimal point"
    return f"a number from {_spell(min(values))} to {_spell(max(values))}, {shown} on average{doubt}"


def _spell(number: float) -> str:
    """A number with as many digits as tell those of a file apart: ten from 100,000 on, else six."""
    return f"{number:.10g}" if abs(number) >= 100_000 else f"{number:g}"


def _find_thousands(cells: Collection[str]) -> str | None:
    """A number whose point may set thousands apart, as in German: in every number with one, three digits follow."""
    with_point = [cell for cell in cells if not cell.lstrip("+-").isdecimal()]
    return with_point[0] if with_point and all(map(_POINT_BEFORE_THREE.fullmatch, with_point)) else None


def list_classes(counts: Counter[str]) -> str:
    """The first classes with their numbers."""
    names = sort_labels(counts)
    shown = ", ".join(f"{name} {counts[name]:,}" for name in names[:_CLASSES_SHOWN])
    return f"{shown}, ..." if len(names) > _CLASSES_SHOWN else shown
