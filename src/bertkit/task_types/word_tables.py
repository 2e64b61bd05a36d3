"""Tables with a word in each row, its tag, and a column that says which sentence it is in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from bertkit.errors import data_error
from bertkit.formats.lines import at_row
from bertkit.formats.tables import Structure, Table
from bertkit.task_types.conll_files import Sentence, is_tag

_SENTENCES = ("sentence #", "sentence_id", "sentence_idx", "sent_id", "sentence")
_WORDS = ("word", "words", "token", "tokens")
_TAGS = ("tag", "tags", "ner_tag", "ner_tags", "label", "labels", "ner")
"""Names of the columns in lower case, of which the first that is there is taken."""


_SAMPLE_ROWS = 100


class WordColumns(NamedTuple):
    """The columns of a table of words; ``tag`` is None in one without tags."""

    sentence: str
    word: str
    tag: str | None

    def used(self) -> list[str]:
        """The columns that are there."""
        return [name for name in self if name is not None]


class _Word(NamedTuple):
    line: int
    sentence: str
    word: str
    tag: str


def find_word_columns(table: Table) -> WordColumns | None:
    """The columns of a table of words, by their names; None without those of a sentence and a word, or with lists.

    The column of tags has nothing but tags in the first rows.
    """
    names = {name.casefold(): name for name in table.columns}
    sentence, word, tag = (
        next((names[name] for name in known if name in names), None) for known in (_SENTENCES, _WORDS, _TAGS)
    )
    if sentence is None or word is None:
        return None
    sample = [dict(zip(table.columns, row, strict=True)) for row in table.sample(_SAMPLE_ROWS)]
    if any(isinstance(row[word], Structure) for row in sample):
        return None
    has_tags = tag is not None and all(is_tag(row[tag].strip()) for row in sample)
    return WordColumns(sentence, word, tag if has_tags else None)


def read_word_rows(table: Table, columns: WordColumns) -> Iterator[Sentence]:
    """The sentences of a table of words, each a document of its own; without a column of tags, without tags.

    Rows of one sentence follow one another and have its name, or the first of them has. Rows without a word are
    left out.
    """
    for document, (sentence, rows) in enumerate(groupby(_read_words(table, columns), key=lambda row: row.sentence)):
        words = list(rows)
        tags = tuple(each.tag for each in words) if columns.tag else ()
        yield Sentence(words[0].line, document, tuple(each.word for each in words), tags, id=sentence)


def _read_words(table: Table, columns: WordColumns) -> Iterator[_Word]:
    sentence = ""
    for row in table.rows(*columns.used()):
        name, word, *tags = (cell.strip() for cell in row.cells)
        sentence = name or sentence
        if not sentence:
            raise data_error(f'{at_row(table.path, row.line)}: "{columns.sentence}" is empty in the first row.')
        if not word:
            continue
        if tags and not is_tag(tags[0]):
            raise data_error(f'{at_row(table.path, row.line)}: "{tags[0]}" is not a tag, such as O, B-TYPE or I.')
        yield _Word(row.line, sentence, word, tags[0] if tags else "")
