"""The columns of a table of choices, and how its label names the right one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Literal, NamedTuple

from bertkit.errors import data_error, list_names, usage_error
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table, require_text
from bertkit.storage.json_text import parse_list
from bertkit.task_files.columns import ID_NAMES, first_named
from bertkit.task_files.files import Columns

Spelling = Literal["number", "number from 1", "letter", "text"]
"""How a label names the right choice: its number from 0 or from 1, its letter from A, or its text."""

_NUMBERED = re.compile(r"(choice|ending|option|opt|op|answer|solution|sol)(?:[ _]?(\d+)|[ _]?([a-h]))", re.IGNORECASE)
_WHOLE = re.compile(r"(\d+)\.0*")
"""A whole number as pandas writes it beside missing ones."""

_LISTS = ("choices", "endings", "options")
_PROMPTS = ("prompt", "question", "sent1", "context", "premise", "ctx", "goal", "text", "sentence")
_PASSAGES = ("context", "premise", "passage", "article", "paragraph", "story", "text")
"""What a column called question is about, as in COPA, RACE and CosmosQA."""

_QUESTIONS = ("question",)
_STEMS = ("stem", "sent2")
LABELS = ("label", "answer", "gold", "correct", "target", "answerkey")


class ChoiceCells(NamedTuple):
    """The cells of one row, and where the row is, for error messages.

    ``keys`` are the names of the choices where the row has its own, as in ARC: A to D in some rows, 1 to 4 in others.
    """

    path: Path
    line: int
    prompt: str
    stem: str
    choices: tuple[str, ...]
    keys: tuple[str, ...]
    label: str | None
    id: str


def find_choices(names: Sequence[str]) -> tuple[str, ...]:
    """The columns of the choices by their names: ``ending0``, ...; ``option_a``, ...; ``A``, ...; or one with lists."""
    numbered: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            place = int(match[2]) if match[2] else ord(match[3].lower())
            numbered.setdefault(match[1].lower(), []).append((place, name))
    for found in numbered.values():
        if len(found) > 1:
            return tuple(name for _, name in sorted(found))
    letters = tuple(name for name in map(chr, range(ord("A"), ord("Z") + 1)) if name in names)
    if {"A", "B"} <= set(letters):
        return letters
    return next(((name,) for name in names if name.lower() in _LISTS), ())


def find_columns(
    table: Table, choices: Sequence[str], *, prompt: str | None = None, label: str | None = None
) -> Columns:
    """The other columns, found by their names; a given ``prompt`` or ``label`` is used as it is."""
    table.require(*filter(None, (prompt, label)))
    answer = label or first_named(LABELS, [name for name in table.columns if name not in choices])
    if answer is None:
        found = f"{table.path} has choices ({list_names(choices)}) and no column called label"
        raise usage_error(f"{found}. Name it: --label COLUMN; if these are no choices: --kind classes.")
    return replace(find_text_columns(table, choices, prompt=prompt), label=answer)


def find_text_columns(table: Table, choices: Sequence[str], *, prompt: str | None = None) -> Columns:
    """The other columns without the label. A question about a passage is read as the beginning of each choice."""
    others = [name for name in table.columns if name not in choices]
    question = first_named(_QUESTIONS, others)
    passage = first_named(_PASSAGES, others) if question else None
    found = prompt or passage or first_named(_PROMPTS, others)
    if found is None:
        raise usage_error(f"{table.path} has choices and no column called prompt. Name it: --text COLUMN.")
    stem = first_named(_STEMS, others) or (question if question != found else None)
    return Columns(first=found, second=stem, id=first_named(ID_NAMES, others))


def read_choice_cells(table: Table, columns: Columns, choices: Sequence[str]) -> Iterator[ChoiceCells]:
    """The rows of a table; without a column of ids, the id of a row is its line number."""
    columns = columns if columns.id in table else replace(columns, id=None)
    used = [*columns.used(), *choices]
    for row in table.rows(*used):
        cells = dict(zip(used, row.cells, strict=True))
        for name in filter(None, (columns.first, columns.second)):
            require_text(cells[name], name, table.path, row.line)
        texts = tuple(cells[name].strip() for name in choices)
        while len(texts) > 2 and not texts[-1]:  # a row may have fewer choices than there are columns
            texts = texts[:-1]
        where = at_row(table.path, row.line)
        texts, keys = (texts, ()) if len(choices) > 1 else _read_list(texts[0], where)
        yield ChoiceCells(
            path=table.path,
            line=row.line,
            prompt=cells[columns.first],
            stem=cells[columns.second] if columns.second else "",
            choices=texts,
            keys=keys,
            label=_read_label(cells[columns.label].strip(), texts, keys) if columns.label else None,
            id=cells[columns.id] if columns.id else str(row.line),
        )


def _read_list(cell: str, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The choices in a cell, and the keys by which the label of the row names them, if there are any."""
    keys: Sequence[object] = ()
    try:
        texts = parse_list(cell)
    except ValueError as error:
        raise data_error(f'{where}: the choices are "{shorten(cell, 60)}", not a list ({error}).') from error
    if isinstance(texts, dict) and "text" in texts:  # as in ARC
        texts, keys = texts["text"], texts.get("label") or ()
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise data_error(f'{where}: the choices are {shorten(cell, 60)}, not a list of texts such as ["one", "two"].')
    if keys and not (isinstance(keys, list) and len(keys) == len(texts)):
        raise data_error(f"{where}: the choices need one label each: {len(texts)} texts, {shorten(str(keys), 60)}.")
    return tuple(text.strip() for text in texts), tuple(str(key).strip() for key in keys)


def _read_label(cell: str, choices: Sequence[str], keys: Sequence[str]) -> str:
    """The label in a cell; the key of a choice becomes the letter of its place."""
    whole = _WHOLE.fullmatch(cell)
    label = whole[1] if whole and cell not in choices else cell
    return chr(ord("A") + keys.index(label)) if label in keys else label


def guess_spelling(rows: Sequence[ChoiceCells]) -> Spelling:
    """How the labels of these rows name the right choice.

    Text if every label is a choice of its row. Numbers count from 1 if none is 0 and one equals the number of choices
    of its row. Labels that fit nothing are read as numbers from 0, so that the error names the first wrong row.
    """
    if all(row.label in row.choices for row in rows):
        return "text"
    if all(row.label is not None and row.label.isdecimal() for row in rows):
        places = [(int(row.label or 0), len(row.choices)) for row in rows]
        from_one = all(place > 0 for place, _ in places) and any(place == count for place, count in places)
        return "number from 1" if from_one else "number"
    if all(row.label is not None and len(row.label) == 1 and row.label.isalpha() for row in rows):
        return "letter"
    return "number" if sum((row.label or "").isdecimal() for row in rows) * 2 >= len(rows) else "text"


def read_place(label: str, choices: Sequence[str], spelling: Spelling, where: str) -> int:
    """The index from 0 of the choice that a label names; a label that names none is an error at ``where``."""
    last = len(choices) - 1
    if spelling == "text":
        if choices.count(label) == 1:
            return choices.index(label)
        times = "none" if label not in choices else "more than one"
        raise data_error(f'{where}: label "{label}" is {times} of the {len(choices)} choices.')
    if spelling == "letter":
        is_letter = len(label) == 1 and label.isascii()
        place, known = ord(label.upper()) - ord("A") if is_letter else -1, f"A to {chr(ord('A') + last)}"
    else:
        origin = 1 if spelling == "number from 1" else 0
        place, known = int(label) - origin if label.isdecimal() else -1, f"{origin} to {last + origin}"
    if not 0 <= place <= last:
        raise data_error(f'{where}: label "{label}" is none of the {len(choices)} choices, {known}.')
    return place


def spell_place(place: int, choices: Sequence[str], spelling: Spelling) -> int | str:
    """The label of the choice with this index from 0, as ``read_place`` reads it."""
    match spelling:
        case "number":
            return place
        case "number from 1":
            return place + 1
        case "letter":
            return chr(ord("A") + place)
        case "text":
            return choices[place]
