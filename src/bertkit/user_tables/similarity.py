"""A user's own pairs of texts, with a score or without: which columns they are."""

from __future__ import annotations

from dataclasses import replace

from bertkit.errors import data_error, usage_error
from bertkit.formats.tables import Table
from bertkit.task_files.columns import find_score, guess_texts
from bertkit.task_files.files import Columns, TaskFiles
from bertkit.task_files.labels import collect_labels
from bertkit.task_types.regression import SMALLEST_UNIT, Numbers
from bertkit.task_types.similarity import SimilarityTask
from bertkit.user_tables.files import Given, Guess, UserFiles, check_rows, describe_file, split_of
from bertkit.user_tables.label_column import read_numbers


def guess_similarity(files: UserFiles, given: Given) -> Guess:
    """The task of pairs, all rows of which are read.

    A column with the name of a score, or the only one of numbers, is the score; without one in train, all pairs belong
    together. Another split may have scores all the same.
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
    described = f"text = {columns.first}, pair = {columns.second}, {score}"
    return Guess(task=task, sentence=described + describe_file(files.table, columns.used()))


def _columns_of_split(table: Table, train: Columns, label: str | None) -> Columns:
    """The columns of train where the table has them; its own where it is another table."""
    same = train.first in table and train.second in table
    label = label if label in table else None
    return _columns_of(table, train.first, train.second, label) if same else _columns_of(table, None, None, label)


def _columns_of(table: Table, text: str | None, pair: str | None, label: str | None) -> Columns:
    table.require(*filter(None, (text, pair, label)))
    found = guess_texts(table, text=text, pair=pair)
    free = [name for name in table.columns if name not in (found.first, found.second, found.id)]
    score = label or find_score(table, free)
    if found.second is None:
        rest = [name for name in free if name != score]
        if len(rest) != 1:
            raise usage_error(f"{table.path}: which column is the second text? Name both: --text COLUMN --pair COLUMN.")
        found = replace(found, second=rest[0])
    return replace(found, label=score)


def _scale(files: TaskFiles, name: str, split: str) -> Numbers:
    """The scale on which the scores of a split are from 0 to 1."""
    values = read_numbers(collect_labels(files.read(name, split)), "Fix the row, or leave its cell empty")
    if not values or max(values) - min(values) < SMALLEST_UNIT:
        found = f"all scores are {values[0]:g}" if values else "no row has a score"
        raise data_error(f"{name}: {found}. Give pairs of different scores, or leave the column out.")
    return Numbers(origin=min(values), unit=max(values) - min(values))
