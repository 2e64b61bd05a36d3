"""Entities as spans of characters, as doccano and spaCy have them, and the words with tags that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import NamedTuple

from bertkit.errors import data_error
from bertkit.formats.cells import Structure
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table
from bertkit.storage.json_text import parse_json
from bertkit.task_files.columns import find_id, first_named
from bertkit.task_files.conll_files import Sentence
from bertkit.text.marks import words_regex

TEXT_NAMES = ("text", "sentence", "content", "data")
_SPANS = ("entities", "spans", "label", "labels", "ner")
"""Names of the columns, of which the first that is there is taken."""

_TYPES = ("label", "type", "entity")
"""Names of the type of an entity in an object."""

_PUNCTUATION = r"|[^\w\s]"
"""A mark of punctuation is a word of its own."""

_SAMPLE_ROWS = 100


class Span(NamedTuple):
    """An entity of this type from the character ``start`` up to ``end``, which is not part of it."""

    start: int
    end: int
    type: str


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text, split at spaces and around punctuation."""
    return tuple(words_regex(_PUNCTUATION).findall(text))


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
        words, tags = split_words(source), tuple[str, ...]()
        if spans is not None and cells[spans]:
            found = _read(cells[spans])
            if found is None:
                example = 'such as [[0, 5, "PER"]] or [{"start": 0, "end": 5, "label": "PER"}]'
                raise data_error(f'{where}: "{spans}" is {shorten(cells[spans], 60)}, not a list of spans, {example}.')
            tags = tag_words(source, words, found, where)
        if words or spans is None:
            id = cells[id_column] if id_column else ""
            yield Sentence([row.line] * max(len(words), 1), document, words, tags, id=id, source=source)


def tag_words(text: str, words: Sequence[str], spans: Sequence[Span], where: str) -> tuple[str, ...]:
    """The tag of each word of ``text`` in IOB2."""
    for span in spans:
        if not 0 <= span.start < span.end <= len(text):
            raise data_error(f"{where}: the entity {list(span)} is not inside of its text of {len(text):,} characters.")
        if any(map(str.isspace, span.type)):  # which ends a tag in a file of columns
            raise data_error(f'{where}: the type "{span.type}" has a space; write {"_".join(span.type.split())}.')
    tags, end, before = list[str](), 0, None
    without: dict[Span | None, None] = dict.fromkeys(spans)
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        over = [span for span in spans if span.start < end and start < span.end]
        if len(over) > 1:
            raise data_error(f"{where}: {list(over[0])} and {list(over[1])} overlap. A word has one entity at most.")
        own = over[0] if over else None
        tags.append("O" if own is None else f"{'I' if own == before else 'B'}-{own.type}")
        without.pop(own, None)
        before = own
    if wordless := next(filter(None, without), None):
        raise data_error(f"{where}: the entity {list(wordless)} has no word.")
    return tuple(tags)


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
