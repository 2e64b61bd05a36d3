"""Tables with a word in each row, its tag, and a column that says which sentence it is in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import data_error
from bertkit.formats.cells import Structure
from bertkit.formats.lines import at_row, open_lines
from bertkit.formats.tables import Table
from bertkit.task_files.columns import first_named
from bertkit.task_files.conll_files import Sentence, is_tag, require_tag
from bertkit.task_files.entity_spans import TEXT_NAMES

_DOCUMENTS = ("document", "document_id", "doc", "doc_id", "file")
_SENTENCES = ("sentence #", "sentence_id", "sentence_idx", "sent_id", "sentence")
_WORDS = ("word", "words", "token", "tokens")
_TAGS = ("tag", "tags", "ner_tag", "ner_tags", "label", "labels", "ner")
"""Names of the columns in lower case, of which the first that is there is taken."""

_SAMPLE_ROWS = 100


class WordColumns(NamedTuple):
    """The columns of a table of words; ``tag`` is None in one without tags, ``document`` in one without documents."""

    sentence: str
    word: str
    tag: str | None
    document: str | None = None

    def used(self) -> list[str]:
        """The columns that are there."""
        return [name for name in self if name is not None]


class _Word(NamedTuple):
    line: int
    document: str
    sentence: str
    word: str
    tag: str


def find_word_columns(table: Table) -> WordColumns | None:
    """The columns of a table of words, by their names; None without those of a sentence and a word, or with lists.

    In the first rows most cells of the column of tags are tags. Without one, the sentences have ids, and the table has
    no texts.
    """
    columns = _find_names(table.columns)
    if columns is None:
        return None
    sample = [dict(zip(table.columns, row, strict=True)) for row in table.sample(_SAMPLE_ROWS)]
    sample = [row for row in sample if row[columns.word].strip()]
    if any(isinstance(row[columns.word], Structure) for row in sample):
        return None
    if columns.tag is not None and 2 * sum(is_tag(row[columns.tag].strip()) for row in sample) > len(sample):
        return columns
    names = {name.casefold() for name in table.columns}
    return None if names.intersection(TEXT_NAMES) else columns._replace(tag=None)


def names_words(path: Path, encoding: str | None) -> bool:
    """Whether the first line of a tab-separated file names the columns of a sentence and a word."""
    with open_lines(path, encoding) as lines:
        return _find_names([name.strip() for name in next(iter(lines), "").split("\t")]) is not None


def read_word_rows(table: Table, columns: WordColumns) -> Iterator[Sentence]:
    """The sentences of a table of words, each a document of its own; without a column of tags, without tags.

    Rows of one sentence follow one another and have its name, or the first of them has. Rows without a word are
    left out.
    """
    sentences = groupby(_read_words(table, columns), key=lambda row: (row.document, row.sentence))
    for number, ((_, name), rows) in enumerate(sentences):
        words = list(rows)
        yield Sentence(
            [each.line for each in words],
            number,
            tuple(each.word for each in words),
            tuple(each.tag for each in words) if columns.tag else (),
            id=name,
        )


def _find_names(columns: Sequence[str]) -> WordColumns | None:
    sentence, word, tag, document = (first_named(known, columns) for known in (_SENTENCES, _WORDS, _TAGS, _DOCUMENTS))
    return None if sentence is None or word is None else WordColumns(sentence, word, tag, document)


def _read_words(table: Table, columns: WordColumns) -> Iterator[_Word]:
    sentence = document = ""
    used = columns.used()
    for row in table.rows(*used):
        cells = {name: cell.strip() for name, cell in zip(used, row.cells, strict=True)}
        sentence, word = cells[columns.sentence] or sentence, cells[columns.word]
        document = (cells[columns.document] if columns.document else "") or document
        if not word:
            continue
        if not sentence:
            raise data_error(f'{at_row(table.path, row.line)}: "{columns.sentence}" is empty in the first row.')
        tag = cells[columns.tag] if columns.tag else ""
        if columns.tag:
            require_tag(tag, at_row(table.path, row.line))
        yield _Word(row.line, document, sentence, word, tag)
