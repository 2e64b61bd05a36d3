"""Sentences with tags in a file of any form: columns as in CoNLL's files, or per row of a table two lists, a text with
spans of characters, or a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertkit.errors import data_error
from bertkit.formats.cells import Structure
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Table
from bertkit.storage.json_text import parse_json
from bertkit.storage.locations import is_dataset
from bertkit.storage.suffixes import JSON, suffix_of
from bertkit.task_files.columns import find_id, first_named
from bertkit.task_files.conll_files import Sentence, has_tag_columns, read_columns, require_tag
from bertkit.task_files.entity_spans import find_span_column, find_text_column, read_texts
from bertkit.task_files.word_tables import find_word_columns, names_words, read_word_rows

_LIST_SUFFIXES = (*JSON, ".parquet")
"""Tables whose cells can be lists."""

_TABLE_SUFFIXES = (*_LIST_SUFFIXES, ".csv", ".xlsx")
_WORDS = ("tokens", "words")
_TAGS = ("ner_tags", "tags", "labels")
"""Names of the columns, of which the first that is there is taken."""


def read_sentences(path: Path, *, tagged: bool = True) -> Iterator[Sentence]:
    """The sentences of a file; in a table each row is one, or the rows of one sentence are, and a document of its own.

    A row without words is left out if they are ``tagged``; in new input it is a sentence, so that each row has an
    answer. Words without tags, or with another number of them, are an error; so is a table without lists of words,
    whose lines would be taken for words.
    """
    if not _is_table(path):
        yield from read_columns(path, tagged=tagged)
        return
    table = Table(path)
    by_word = find_word_columns(table)
    if by_word is not None and (by_word.tag or not tagged):
        yield from read_word_rows(table, by_word if tagged else by_word._replace(tag=None))
        return
    columns = _find_columns(table)
    if len(columns) < 1 + tagged:
        yield from _read_texts(table, tagged=tagged)
        return
    used = columns[: 1 + tagged]
    id_column = find_id(table.columns)
    for document, row in enumerate(table.rows(*used, *([id_column] if id_column else []))):
        where = at_row(path, row.line)
        words, *others = (_read_list(cell, name, where) for cell, name in zip(row.cells, used, strict=False))
        tags = others[0] if others else ()
        if tagged and len(tags) != len(words):
            raise data_error(f"{where}: {len(words):,} words and {len(tags):,} tags. Every word needs a tag.")
        for tag in tags:
            require_tag(tag, where)
        if words or not tagged:
            yield Sentence(
                [row.line] * max(len(words), 1), document, words, tags, id=row.cells[-1] if id_column else ""
            )


def open_sentence_rows(path: Path) -> Table | None:
    """The table in a file of new input, if each of its rows is a sentence; None for words in columns or in rows."""
    table = Table(path) if _is_table(path) else None
    return None if table is None or find_word_columns(table) is not None else table


def _read_texts(table: Table, *, tagged: bool) -> Iterator[Sentence]:
    """The texts of a table without lists of words, with their entities as spans of characters if they are tagged."""
    text, spans = find_text_column(table), find_span_column(table) if tagged else None
    if text is None or (tagged and spans is None):
        raise data_error(
            f"{table.path} is a table. Words are read from columns without a header, as in a .conll, from lists in "
            f'the columns "{_WORDS[0]}" and "{_TAGS[0]}" of a .jsonl, or from a row for each with "sentence_id", '
            '"word" and "tag"; texts from its column "text", with "entities" as [[0, 5, "PER"]], or lines of a .txt.'
        )
    yield from read_texts(table, text, spans)


def holds_tags(table: Table, encoding: str | None = None) -> bool:
    """Whether a file has words with tags, or texts with spans, by the end of its name, its columns or first lines."""
    if not _is_table(table.path, encoding):
        return has_tag_columns(table.path, encoding)
    words = find_word_columns(table)
    if words is not None and words.tag is not None:
        return True
    if not (suffix_of(table.path) in _LIST_SUFFIXES or is_dataset(table.path)):
        return False  # its cells can be no lists
    return len(_find_columns(table)) > 1 or find_span_column(table) is not None


def _is_table(path: Path, encoding: str | None = None) -> bool:
    """Whether a file is a table by its name, or a ``.tsv`` whose first line names the columns of a table of words."""
    if suffix_of(path) == ".tsv":
        return names_words(path, encoding)
    return suffix_of(path) in _TABLE_SUFFIXES or is_dataset(path)


def _find_columns(table: Table) -> list[str]:
    """The columns of words and of tags, those of them that hold lists in the first row."""
    first = next(iter(table.sample(1)), [])
    lists = [name for name, cell in zip(table.columns, first, strict=False) if isinstance(cell, Structure)]
    words, tags = (first_named(known, lists) for known in (_WORDS, _TAGS))
    return [words, *filter(None, (tags,))] if words else []


def _read_list(cell: str, column: str, where: str) -> tuple[str, ...]:
    """The texts in a list; anything else in the cell is a data error."""
    values = parse_json(cell) if isinstance(cell, Structure) else None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        advice = " Write the names of the tags, not their numbers." if column.casefold() in _TAGS else ""
        raise data_error(f'{where}: "{column}" is {cell[:40]}, not a list of texts.{advice}')
    return tuple(values)
