"""A user's own table of texts with a label: classes, numbers, or several labels each."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import TypedDict

from bertkit.errors import data_error, list_names
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table
from bertkit.formats.workbooks import is_workbook
from bertkit.task_files.columns import guess_columns
from bertkit.task_files.files import Columns, TaskFiles
from bertkit.task_files.labels import (
    Labels,
    check_spelling,
    collect_labels,
    merge_spellings,
    sort_labels,
)
from bertkit.task_types import regression, text_classification
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.regression import SMALLEST_UNIT, Numbers, RegressionTask
from bertkit.task_types.text_classification import TextClassificationTask
from bertkit.task_types.text_task import TextTask
from bertkit.user_tables.files import Given, Guess, UserFiles, check_rows, describe_columns, describe_file
from bertkit.user_tables.label_column import LabelColumn, describe_labels, examine_labels, read_numbers


def guess_labels(files: UserFiles, given: Given, *, allow_rare_labels: bool, fold_labels: bool) -> Guess:
    """The task of texts, or pairs of texts, with a label, all rows of which are read."""
    columns = guess_columns(files.table, text=given.text, pair=given.pair, label=given.label)
    found = files.read_tables_with(columns)
    labels = collect_labels(found.read(files.name, "train"))
    _refuse_objects(files.table, columns, labels)
    column = examine_labels(files.first, columns, labels, given.kind)
    if column.kind != "number" and not columns.labels:
        column = replace(column, labels=merge_spellings(column.labels)) if fold_labels else column
        if not allow_rare_labels:
            check_spelling(column.labels)
    task = _build(files, found, column, fold_labels=fold_labels)
    check_rows(task, files.paths.keys() - {"train"})
    is_text = files.table.form.kind == "delimited" and not is_workbook(files.first)
    found_labels = describe_labels(column, is_text=is_text)
    described = describe_columns(columns, f"{','.join(columns.answers)} ({found_labels})")
    sentence = described + describe_file(files.table, columns.used())
    return Guess(task=task, sentence=sentence)


def _refuse_objects(table: Table, columns: Columns, labels: Labels) -> None:
    """Raise a data error for labels that are objects of JSON or Parquet."""
    if objects := [label for label in labels.counts if label.startswith('{"')]:
        fields = [name for name in table.nested_columns if name.startswith(f"{columns.label}.")]
        advice = (
            f"Name one of {list_names(fields)}: --label COLUMN." if fields else "Write it into a column of its own."
        )
        where = at_row(*labels.first_seen[objects[0]])
        raise data_error(f"{where}: the label is an object, {shorten(objects[0], 60)}. {advice}")


class _SharedSettings(TypedDict):
    name: str
    pair: bool
    max_length: int
    files: TaskFiles
    heldout: float


def _build(files: UserFiles, found: TaskFiles, column: LabelColumn, *, fold_labels: bool) -> TextTask:
    counts, columns = column.labels.counts, found.splits["train"].columns
    if not counts.total():
        raise data_error(f'{files.first}: no row has a label in column "{",".join(columns.answers)}".')
    if len(counts) == 1 and counts.total() == column.rows:
        raise data_error(
            f'{files.first}: every row has the label "{next(iter(counts))}". There must be two labels or more.'
        )
    shared: _SharedSettings = {
        "name": files.name,
        "pair": columns.second is not None,
        "max_length": files.max_length,
        "files": found,
        "heldout": files.heldout,
    }
    if column.kind == "number":
        return RegressionTask(
            metric=regression.USUAL_SCORES[0],
            also=regression.USUAL_SCORES,
            numbers=_scale(files.first, column.labels),
            **shared,
        )
    if column.kind == "labels":
        labels = tuple(counts) if column.indicators else sort_labels(counts)
        return MultiLabelTask(labels=labels, separator=column.separator, fold_labels=fold_labels, **shared)
    return TextClassificationTask(
        metric=text_classification.USUAL_SCORES[0],
        also=text_classification.USUAL_SCORES,
        labels=sort_labels(counts),
        fold_labels=fold_labels,
        **shared,
    )


def _scale(path: Path, labels: Labels) -> Numbers:
    """The scale on which the numbers of train have mean 0 and standard deviation 1."""
    values = read_numbers(labels, "Fix the row, leave its cell empty if the number is unknown, or give --kind classes")
    spread = statistics.pstdev(values)
    if spread < SMALLEST_UNIT:
        raise data_error(
            f"{path}: all numbers of the label column are {values[0]:g}, or too near to it to be told apart. There "
            "must be at least two."
        )
    return Numbers(origin=statistics.fmean(values), unit=spread)
