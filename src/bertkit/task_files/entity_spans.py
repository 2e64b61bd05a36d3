"""Entities as spans of characters, as doccano and spaCy have them, and the words with tags that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from textwrap import shorten
from typing import NamedTuple

from bertkit.errors import data_error
from bertkit.formats.cells import Structure
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table
from bertkit.storage.json_text import parse_json
from bertkit.task_files.columns import find_id, first_named
from bertkit.task_files.conll_files import Sentence
from bertkit.text.marks import list_marks

TEXT_NAMES = ("text", "sentence", "content", "data")
_SPANS = ("entities", "spans", "label", "labels", "ner")
"""Names of the columns, of which the first that is there is taken."""

_TYPES = ("label", "type", "entity")
"""Names of the type of an entity in an object."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Myanmar, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # Chinese radicals, marks and numbers
    "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Characters of scripts without spaces between words."""

_SAMPLE_ROWS = 100


class Span(NamedTuple):
    """An entity of this type from the character ``start`` up to ``end``, which is not part of it."""

    start: int
    end: int
    type: str


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text, split at spaces and around punctuation.

    In scripts without spaces, such as Chinese and Thai, every character is a word, with the marks that follow it:
    entities may begin and end anywhere there.
    """
    return tuple(_words().findall(text))


@cache
def _words() -> re.Pattern[str]:
    letter, marks = rf"[^\W{_UNSPACED}]", f"[{list_marks()}]"
    return re.compile(rf"[{_UNSPACED}]{marks}*|{letter}+(?:{marks}+{letter}*)*|[^\w\s]")


def locate_words(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """The characters of each word in the text that has them in this order."""
    places, end = list[tuple[int, int]](), 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places


def find_text_column(table: Table) -> str | None:
    """The column of texts; None without one."""
    return first_named(TEXT_NAMES, table.columns)


def find_span_column(table: Table) -> str | None:
    """The column with lists of spans in most of the first rows; None without one, or without a column of texts."""
    if find_text_column(table) is None:
        return None
    sample = table.sample(_SAMPLE_ROWS)
    for name in filter(None, (first_named([known], table.columns) for known in _SPANS)):
        place = list(table.columns).index(name)
        cells = [row[place] for row in sample if row[place] not in ("", "[]")]
        if 2 * sum(isinstance(cell, Structure) and _read(cell) is not None for cell in cells) > len(cells):
            return name
    return None


def read_texts(table: Table, text: str, spans: str | None) -> Iterator[Sentence]:
    """The texts of a table as sentences, each a document of its own; with the column ``spans``, tagged.

    A text without words is left out if it is tagged. Where its entities are null they are not known, and the sentence
    has no tags. A word that an entity covers in part belongs to it. Entities that overlap, or that have no word, are a
    data error.
    """
    id_column = find_id(table.columns)
    used = [text, *filter(None, (spans, id_column))]
    for document, row in enumerate(table.rows(*used)):
        cells = dict(zip(used, row.cells, strict=True))
        where, source = at_row(table.path, row.line), cells[text]
        words, tags, widened = split_words(source), tuple[str, ...](), 0
        if spans is not None and cells[spans]:
            found = _read(cells[spans])
            if found is None:
                example = 'such as [[0, 5, "PER"]] or [{"start": 0, "end": 5, "label": "PER"}]'
                raise data_error(f'{where}: "{spans}" is {shorten(cells[spans], 60)}, not a list of spans, {example}.')
            places = locate_words(source, words)
            tags = tag_words(source, places, found, where)
            widened = _count_widened(places, found)
        if words or spans is None:
            id = cells[id_column] if id_column else ""
            yield Sentence([row.line] * max(len(words), 1), document, words, tags, id, source, widened)


def tag_words(text: str, places: Sequence[tuple[int, int]], spans: Sequence[Span], where: str) -> tuple[str, ...]:
    """The tag in IOB2 of each word of ``text``, which has these ``places``."""
    for span in spans:
        if not 0 <= span.start < span.end <= len(text):
            raise data_error(f"{where}: the entity {list(span)} is not inside of its text of {len(text):,} characters.")
        if any(map(str.isspace, span.type)):  # which ends a tag in a file of columns
            raise data_error(f'{where}: the type "{span.type}" has a space; write {"_".join(span.type.split())}.')
    tags, before = list[str](), None
    without: dict[Span | None, None] = dict.fromkeys(spans)
    for start, end in places:
        over = [span for span in spans if span.start < end and start < span.end]
        if len(over) > 1:
            first, second = sorted(over[:2])
            share = "overlap" if second.start < first.end else f'share the word "{shorten(text[start:end], 60)}"'
            raise data_error(
                f"{where}: {list(first)} and {list(second)} {share}. A word has one entity at most: leave one out, or "
                "make a file and a model for each type."
            )
        own = over[0] if over else None
        tags.append("O" if own is None else f"{'I' if own == before else 'B'}-{own.type}")
        without.pop(own, None)
        before = own
    if wordless := next(filter(None, without), None):
        raise data_error(f"{where}: the entity {list(wordless)} has no word.")
    return tuple(tags)


def _count_widened(places: Sequence[tuple[int, int]], spans: Sequence[Span]) -> int:
    """The spans that begin or end inside of a word."""
    inside = {at for start, end in places for at in range(start + 1, end)}
    return sum(span.start in inside or span.end in inside for span in spans)


def _read(cell: str) -> list[Span] | None:
    """The spans in a cell; None if it holds anything else."""
    try:
        values = parse_json(cell)
    except ValueError:
        return None
    if not isinstance(values, list):
        return None
    spans = [_read_span(value) for value in values]
    return None if None in spans else [span for span in spans if span is not None]


def _read_span(value: object) -> Span | None:
    if isinstance(value, dict):
        value = [value.get("start"), value.get("end"), next((value[name] for name in _TYPES if name in value), None)]
    match value:
        case [bool(), _, _] | [_, bool(), _]:  # which Python counts among the whole numbers
            return None
        case [int(start), int(end), str(type)] if type.strip():
            return Span(start, end, type)
    return None
