"""Texts of evaluation files that also occur in a corpus, which makes scores on them too good.

A text occurs in a document if they share 13 words in sequence (Brown et al. 2020, "Language Models are Few-Shot
Learners", appendix C). Texts of fewer words are not looked for: they occur by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.data.ngrams import NgramHasher
from bertkit.errors import BertkitError, data_error
from bertkit.formats.lines import at_line, open_lines
from bertkit.formats.tables import Table
from bertkit.storage.json_text import parse_json
from bertkit.storage.suffixes import JSON, suffix_of

NGRAM = 13
"""Words."""

_TABLES = (".csv", ".parquet", ".xlsx")


@dataclass(frozen=True, kw_only=True)
class OverlapReport:
    """One evaluation file: how many of its ``texts`` have 13 words or more, and how many of these are ``found``."""

    file: str
    texts: int
    found: int

    def line(self) -> str:
        """The report as a line of text."""
        share = f" ({self.found / self.texts:.1%})" if self.texts else ""
        return f"{self.file}: {self.found:,} of {self.texts:,} texts of {NGRAM} words or more are in the corpus{share}"


class EvaluationTexts:
    """The texts of ``files``: cells of tables, strings in JSON, or lines. Remembers which were found."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = files
        self._hasher = NgramHasher(NGRAM)
        parts = [list(self._hash(file)) for file in files]
        hashes = [each for part in parts for each in part]
        self._ends = np.cumsum([0, *map(len, parts)])
        self._owners = np.repeat(np.arange(len(hashes)), [len(each) for each in hashes])
        # ``_places`` has the index in ``_known`` of every sequence of every text.
        self._known, self._places = np.unique(np.concatenate([np.zeros(0, np.uint64), *hashes]), return_inverse=True)
        self._is_found = np.zeros(len(self._known), bool)

    def start_document(self) -> None:
        """Begin a document of the corpus."""
        self._hasher.start_document()

    def occur_in(self, text: str) -> bool:
        """Whether a text occurs in the next chunk of the document."""
        if not len(self._known):  # hashing takes ten times as long as everything else that a pass does
            return False
        hashes = self._hasher.add(text)
        places = np.searchsorted(self._known, hashes).clip(max=len(self._known) - 1)
        found = places[self._known[places] == hashes]
        self._is_found[found] = True
        return len(found) > 0

    def reports(self) -> tuple[OverlapReport, ...]:
        """What was found of each file."""
        is_found = np.zeros(self._ends[-1], bool)
        is_found[self._owners[self._is_found[self._places]]] = True
        return tuple(
            OverlapReport(file=str(file), texts=int(end - begin), found=int(is_found[begin:end].sum()))
            for file, begin, end in zip(self.files, self._ends[:-1], self._ends[1:], strict=True)
        )

    def _hash(self, file: Path) -> Iterator[NDArray[np.uint64]]:
        for text in _read(file):
            self._hasher.start_document()
            hashes = self._hasher.add(text)
            if len(hashes):
                yield hashes


def _read(file: Path) -> Iterator[str]:
    """The texts of one file. Lines of TSV are taken as they are: its cells have no line ends, and a tab is no word."""
    suffix = suffix_of(file)
    if suffix in _TABLES:
        table = Table(file)
        yield from table.columns  # which are a row where a CSV has no header
        for row in table.rows(*table.columns):
            yield from row.cells
        return
    if suffix == ".json" and (whole := _read_whole(file)) is not None:
        yield from _strings(whole)
        return
    with open_lines(file) as lines:
        if suffix in JSON:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield from _strings(_parse(at_line(file, number), line))
        else:
            yield from lines


def _read_whole(file: Path) -> object:
    """The value in a file of JSON; None if it has one in each line."""
    with open_lines(file) as lines:
        text = "".join(lines)
    try:
        return parse_json(text)
    except ValueError as error:
        if isinstance(error, JSONDecodeError) and error.msg == "Extra data":
            return None
        raise _unreadable(str(file), error) from error


def _parse(place: str, text: str) -> object:
    try:
        return parse_json(text)
    except ValueError as error:
        raise _unreadable(place, error) from error


def _unreadable(place: str, error: ValueError) -> BertkitError:
    return data_error(f"{place} is not JSON that can be read: {error}.")


def _strings(value: object) -> Iterator[str]:
    """All strings inside a value of JSON, at any depth."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(values):
                waiting += reversed(values)
            case dict(fields):
                waiting += reversed(fields.values())
