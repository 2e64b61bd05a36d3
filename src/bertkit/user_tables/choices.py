"""A user's own table of choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertkit.errors import data_error
from bertkit.formats.cells import is_number
from bertkit.task_files.choice_columns import LABELS, find_choices, find_columns, guess_spelling, read_choice_cells
from bertkit.task_files.columns import first_named, no_rows
from bertkit.task_files.indicators import are_indicators, split_names
from bertkit.task_types.multiple_choice import MultipleChoiceTask
from bertkit.user_tables.files import Given, Guess, UserFiles, check_rows, describe_file

_SAMPLE_ROWS = 100
_SPELLINGS = {
    "number": "the number of the right one, counted from 0",
    "number from 1": "the number of the right one, counted from 1",
    "letter": "the letter of the right one",
    "text": "the text of the right one",
}


def choices_of(files: UserFiles, given: Given) -> tuple[str, ...]:
    """The columns of the choices; none where they are columns of 0 and 1, or the user asks for another task.

    Columns of numbers are choices only if the label names one of them by its letter or its text.
    """
    table = files.table
    if given.kind is not None or given.pair is not None:
        return ()
    taken = {given.text, *split_names(given.label, table.columns)}
    choices = find_choices([name for name in table.columns if name not in taken])
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.sample(_SAMPLE_ROWS)] if choices else []
    if choices and not rows:
        raise no_rows(table)
    if all(are_indicators([row[name] for row in rows]) for name in choices):
        return ()
    numbers = len(choices) > 1 and all(is_number(row[name]) for row in rows for name in choices if row[name].strip())
    return () if numbers and not _name_one(rows, choices, given.label) else choices


def _name_one(rows: Sequence[Mapping[str, str]], choices: Sequence[str], label: str | None) -> bool:
    """Whether the labels of ``rows`` are letters, or each is a choice of its row."""
    column = label or first_named(LABELS, [name for name in rows[0] if name not in choices])
    answered = [(row[column].strip(), row) for row in rows if column is not None and row[column].strip()]
    return bool(answered) and all(
        (len(answer) == 1 and answer.isalpha()) or answer in (row[name].strip() for name in choices)
        for answer, row in answered
    )


def guess_choices(files: UserFiles, given: Given, choices: tuple[str, ...]) -> Guess:
    """The multiple-choice task of the files, all rows of which are read."""
    columns = find_columns(files.table, choices, prompt=given.text, label=given.label)
    found = files.read_tables_with(columns)
    rows = [
        cells
        for table in found.tables(files.name, "train")
        for cells in read_choice_cells(table, found.splits["train"].columns, choices)
    ]
    labelled = [cells for cells in rows if cells.label]
    if not labelled:
        raise data_error(f'{files.first}: no row has a label in column "{columns.label}".')
    task = MultipleChoiceTask(
        name=files.name,
        choices=choices,
        spelling=guess_spelling(labelled),
        max_length=files.max_length,
        files=found,
        heldout=files.heldout,
    )
    check_rows(task, files.paths)
    named = choices[0] if len(choices) == 1 else f"{choices[0]} to {choices[-1]}"
    stem = f", beginning of the choices = {columns.second}" if columns.second else ""
    id = f", id = {columns.id}" if columns.id else ""
    least, most = min(len(cells.choices) for cells in rows), max(len(cells.choices) for cells in rows)
    count = str(most) if least == most else f"{least} to {most}"
    sentence = (
        f"prompt = {columns.first}{stem}, choices = {named} ({count} each), "
        f"label = {columns.label} ({_SPELLINGS[task.spelling]}){id}"
        f"{describe_file(files.table, (*columns.used(), *choices))}"
    )
    return Guess(task=task, sentence=sentence)
