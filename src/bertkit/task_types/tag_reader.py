"""Reads sentences whose words have tags: files in CoNLL's columns, tables with lists, and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from bertkit.errors import count_of, data_error, did_you_mean, verb_of
from bertkit.formats.lines import at_row, open_lines
from bertkit.formats.tables import Table
from bertkit.metrics.entities import SCHEMES, convert
from bertkit.storage.suffixes import suffix_of
from bertkit.task_files.columns import find_id
from bertkit.task_files.conll_files import COLUMNS, Sentence, has_tag_columns
from bertkit.task_files.entity_spans import locate_words, split_words
from bertkit.task_files.files import Columns
from bertkit.task_files.labels import list_labels
from bertkit.task_files.tag_files import open_sentence_rows, read_sentences
from bertkit.task_types.held_out import HoldOut, describe_held_out, describe_overlap, hold_out
from bertkit.task_types.reader import Reader


@dataclass(frozen=True)
class TagExample:
    """A sentence; ``label`` has its tags in IOB2, None if unknown.

    ``source`` is the text that the words were split from; without one they have spaces between them. ``document`` has
    the words of all sentences of its document, and the sentence begins at ``start``; it is empty if none is known.
    """

    id: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None
    source: str | None = None
    document: tuple[str, ...] = field(default=(), repr=False)
    start: int = 0
    second: ClassVar[None] = None

    @property
    def first(self) -> str:
        """The text of the sentence."""
        return " ".join(self.words) if self.source is None else self.source

    def around(self, most: int) -> tuple[Sequence[str], Sequence[str]]:
        """The words of the document before the sentence and after it, at most ``most`` each."""
        end = self.start + len(self.words)
        return self.document[max(0, self.start - most) : self.start], self.document[end : end + most]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The characters of each word in the text."""
        return locate_words(self.first, self.words)


SENTENCES = HoldOut(
    "sentences",
    split=partial(hold_out, by_class=False),
    describe=partial(describe_held_out, noun="sentences", together="equal sentences"),
    compare=describe_overlap,
)
"""A share of the sentences, whatever their tags."""


@dataclass(frozen=True, kw_only=True)
class TagReader(Reader[TagExample]):
    """Reads tags that are among ``labels``."""

    held_out = SENTENCES

    labels: tuple[str, ...]

    def rows(self, split: str) -> Iterator[TagExample]:
        """Every sentence in the files of a split."""
        for path in self.files.paths(self.name, split):
            yield from self._read(path, tagged=True)

    def read(self, path: Path) -> Iterator[TagExample]:
        """Sentences in columns, of which the first is the word, in lists, in a column ``text``, or in the lines of a
        ``.txt`` file that has no tags."""
        if suffix_of(path) != ".txt" or has_tag_columns(path):
            yield from self._read(path, tagged=False)
            return
        with open_lines(path) as lines:
            for number, line in enumerate(lines, start=1):
                yield self.read_line(str(number), line.rstrip("\r\n"))

    def open_table(self, path: Path) -> tuple[Table, Columns] | None:
        """A table with a sentence in each row; None for a word in each row or line, and for the lines of a ``.txt``."""
        table = None if suffix_of(path) == ".txt" else open_sentence_rows(path)
        return None if table is None else (table, Columns(first="", id=find_id(table.columns)))

    def read_line(self, name: str, line: str) -> TagExample:
        """A text, split into words at spaces and around punctuation."""
        return TagExample(name, split_words(line), source=line)

    def columns_of(self, path: Path) -> Columns:
        """The first and the last column."""
        return COLUMNS

    def describe_rows(self, split: str, labelled: Sequence[TagExample]) -> list[str]:
        """Ill-formed tags, entities that end inside of words, and words that give no token."""
        paths = self.files.paths(self.name, split)
        sentences = [sentence for path in paths for sentence in read_sentences(path)]
        notes = []
        if ill_formed := count_ill_formed(sentences):
            are = verb_of(ill_formed, "is", "are")
            notes.append(f"{count_of(ill_formed, 'tag')} of {split} {are} ill-formed, and read as conlleval reads them")
        if widened := sum(sentence.widened for sentence in sentences):
            begin = f"{count_of(widened, 'span')} of {split} {verb_of(widened, 'begins', 'begin')}"
            notes.append(f"{begin} or {verb_of(widened, 'ends', 'end')} inside of a word, and the whole word is taken")
        if unread := sum(not _is_readable(word) for sentence in sentences for word in sentence.words):
            have = verb_of(unread, "has", "have")
            notes.append(
                f"{count_of(unread, 'word')} of {split} {have} no character that tokenizers keep: predicted as O"
            )
        return notes

    def _read(self, path: Path, *, tagged: bool) -> Iterator[TagExample]:
        for _, members in groupby(read_sentences(path, tagged=tagged), key=lambda sentence: sentence.document):
            sentences = list(members)
            document = tuple(word for sentence in sentences for word in sentence.words)
            start = 0
            for sentence in sentences:
                name = sentence.id or str(sentence.lines[0])
                tags = self._tags(sentence, path) if tagged and sentence.tags else None
                yield TagExample(name, sentence.words, tags, sentence.source, document, start)
                start += len(sentence.words)

    def _tags(self, sentence: Sentence, path: Path) -> tuple[str, ...]:
        tags = tuple(convert(sentence.tags, "iob2"))
        for number, tag in enumerate(tags):
            if tag not in self.labels:
                known = list_labels(self.labels)
                where, hint = at_row(path, sentence.lines[number]), did_you_mean(tag, self.labels)
                raise data_error(f'{where}: unknown tag "{tag}". {self.name} knows: {known}.{hint}')
        return tags


def count_ill_formed(sentences: Sequence[Sentence]) -> int:
    """The tags that break the scheme (IOB1, IOB2, ...) that fits most of them."""
    tags = [sentence.tags for sentence in sentences]
    return min(
        sum(found != valid for each in tags for found, valid in zip(each, convert(each, scheme), strict=True))
        for scheme in SCHEMES
    )


def _is_readable(word: str) -> bool:
    """Whether a word has a character that tokenizers keep: control characters, spaces and U+FFFD give no token."""
    return any(each.isprintable() and not each.isspace() and each != "\ufffd" for each in word)
