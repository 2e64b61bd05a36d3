"""A user's own pairs of texts, with a score or without: which columns they are."""

from __future__ import annotations

from dataclasses import replace

from bertkit.errors import data_error, usage_error
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table
from bertkit.task_files.columns import guess_texts, label_by_name
from bertkit.task_files.files import Columns, TaskFiles
from bertkit.task_files.labels import are_numbers
from bertkit.task_types.regression import SMALLEST_UNIT, Numbers
from bertkit.task_types.similarity import SimilarityTask
from bertkit.user_tables.files import Given, Guess, UserFiles, check_rows, split_of
from bertkit.user_tables.label_column import WRITE_POINTS, has_comma


def guess_similarity(files: UserFiles, given: Given) -> Guess:
    """The task of pairs, all rows of which are read.

    A column with the name of a score is the score; without one in train, all pairs belong together. Another split may
    have scores all the same.
    """
    columns = _columns_of(files.table, given.text, given.pair, given.label)
    splits = {}
    for split, paths in files.paths.items():
        table = files.opened.table(paths[0])
        own = columns if table is files.table else _columns_of_split(table, columns, given.label)
        splits[split] = replace(split_of(paths, own), may_lack_labels=True)
    made = files.read_tables(splits)
    scored = next((name for name in ("train", "dev") if name in splits and splits[name].columns.label), None)
    task = SimilarityTask(
        name=files.name,
        metric="roc_auc" if scored is None else "spearman",
        training="pairs" if columns.label is None else "scores",
        numbers=Numbers() if scored is None else _scale(made, files.name, scored),
        files=made,
        max_length=files.max_length,
        heldout=files.heldout,
    )
    check_rows(task, files.paths)
    score = (
        f"score = {columns.label} (from {task.numbers.origin:g} to {task.numbers.origin + task.numbers.unit:g})"
        if columns.label is not None
        else "no score, so that the two texts of a row belong together"
    )
    return Guess(task=task, sentence=f"text = {columns.first}, pair = {columns.second}, {score}")


def _columns_of_split(table: Table, train: Columns, label: str | None) -> Columns:
    """The columns of train where the table has them; its own where it is another table."""
    same = train.first in table and train.second in table
    label = label if label in table else None
    return _columns_of(table, train.first, train.second, label) if same else _columns_of(table, None, None, label)


def _columns_of(table: Table, text: str | None, pair: str | None, label: str | None) -> Columns:
    table.require(*filter(None, (text, pair, label)))
    found = guess_texts(table, text=text, pair=pair)
    if found.second is None:
        score = label or label_by_name([name for name in table.columns if name not in (text, pair)])
        rest = [name for name in table.columns if name not in (found.first, found.id, score)]
        if len(rest) != 1:
            raise usage_error(f"{table.path}: which column is the second text? Name both: --text COLUMN --pair COLUMN.")
        found = Columns(first=found.first, second=rest[0], id=found.id)
    free = [name for name in table.columns if name not in (found.first, found.second, found.id)]
    return Columns(first=found.first, second=found.second, id=found.id, label=label or label_by_name(free))


def _scale(files: TaskFiles, name: str, split: str) -> Numbers:
    """The scale on which the scores of a split are from 0 to 1."""
    values = []
    for cells in files.read(name, split):
        if cells.label:
            if not are_numbers([cells.label]):
                advice = WRITE_POINTS if has_comma(cells.label) else "Fix the row"
                raise data_error(f'{at_row(cells.path, cells.line)}: "{cells.label}" is not a number. {advice}.')
            values.append(float(cells.label))
    if not values or max(values) - min(values) < SMALLEST_UNIT:
        found = f"all scores are {values[0]:g}" if values else "no row has a score"
        raise data_error(f"{name}: {found}. Give pairs of different scores, or leave the column out.")
    return Numbers(origin=min(values), unit=max(values) - min(values))
