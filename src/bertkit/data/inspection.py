"""Statistics of text files before preparation: encodings, documents, duplicates, lengths, scripts, languages.

Files are read once, chunk by chunk; eight bytes per document are kept, to find duplicates across files.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from bertkit.data.cleaning import DuplicateDocuments
from bertkit.data.document_hash import DocumentHash, count_duplicates
from bertkit.data.languages import WITH_MARKS, LanguageCounter, ScriptCounter, find_library
from bertkit.data.overlap import EvaluationTexts, OverlapReport
from bertkit.data.repeated_lines import hash_lines
from bertkit.data.sources import ReadLog, ReadOptions, TextChunk, by_document, read_chunks
from bertkit.errors import BertkitError, count_of, usage_error
from bertkit.formats.compression import ByteStream
from bertkit.formats.text_files import check_text_file
from bertkit.results import Result

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BOUNDS = (100, 1_000, 10_000, 100_000, 1_000_000)
_BAR = 40
_MOST_LINES = 2_000_000
_MOST_BARS = 10


@dataclass(kw_only=True)
class Counts:
    """What was counted in a text.

    ``duplicates`` repeat an earlier document exactly, except for white space around it; ``near_duplicates``, which
    include them, at least 80 % of it. ``overlapping_documents`` share text with an evaluation file. ``repeated_lines``
    of 20 characters or more occurred before, in any file. ``invalid_characters`` are not UTF-8;
    ``replacement_characters`` are those U+FFFD that are in the text itself.
    """

    documents: int = 0
    blank_documents: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    overlapping_documents: int = 0
    repeated_lines: int = 0
    sentences: int = 0
    characters: int = 0
    control_characters: int = 0
    replacement_characters: int = 0
    invalid_characters: int = 0


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """One file. ``problem`` says why it cannot be prepared as it is; the counts cover what could be read.

    ``histogram`` counts documents by their characters: fewer than 100, 1,000, ..., a million, and longer ones.
    ``scripts`` and ``languages`` count characters; the latter is empty without the library.
    """

    file: str
    encoding: str
    origin: str
    boundary: str
    sentence_lines: bool
    counts: Counts
    histogram: list[int]
    scripts: dict[str, int]
    languages: dict[str, int]
    problem: str

    def lines(self) -> list[str]:
        """The report as lines of text."""
        sentences = "one sentence per line" if self.sentence_lines else ""
        form = ", ".join(filter(None, (self.encoding, self.origin, f"documents by {self.boundary}", sentences)))
        return [
            f"{self.file}: {form}",
            f"  {_describe(self.counts)}",
            *([f"  ! {self.problem}"] if self.problem else []),
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class CorpusReport(Result):
    """The reports of all files, in order, what was found of evaluation files, and what was skipped in folders."""

    files: tuple[FileReport, ...]
    overlaps: tuple[OverlapReport, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def counts(self) -> Counts:
        """The counts of all files together."""
        names = [each.name for each in fields(Counts)]
        return Counts(**{name: sum(getattr(each.counts, name) for each in self.files) for name in names})

    @property
    def vocab_size(self) -> int:
        """A size of the vocabulary for this corpus: an entry for every 100 tokens, from 1,000 to BERT's 30,000.

        With 1.65 million tokens 16,000 entries are better than 8,000 or 4,000 (docs/results/quickstart.md). English has
        about 4.5 characters per token.
        """
        entries = round(self.counts.characters / 4.5 / 100, -3)
        return int(min(max(entries, 1_000), 30_000))

    @property
    def needs_accents(self) -> str:
        """The script whose words become others without their marks, if it has a tenth of the characters; else empty."""
        scripts = sum((Counter(each.scripts) for each in self.files), Counter[str]())
        found = [script for script, count in scripts.items() if script in WITH_MARKS and count * 10 >= scripts.total()]
        return max(found, key=lambda script: scripts[script], default="")

    @property
    def problems(self) -> list[str]:
        """Why files cannot be prepared as they are, one line per problem."""
        return [each.problem for each in self.files if each.problem]

    def lines(self) -> list[str]:
        """The report as lines of text: every file, the totals, the lengths."""
        shown = [line for each in self.files for line in each.lines()]
        if len(self.files) > 1:
            shown += [f"all {len(self.files):,} files", f"  {_describe(self.counts)}"]
        shown += [*self.skipped, *(each.line() for each in self.overlaps)]
        shown += _draw_lengths([sum(column) for column in zip(*(each.histogram for each in self.files), strict=True)])
        shown += _draw_most("characters by script", [each.scripts for each in self.files])
        shown += _draw_most("characters by language", [each.languages for each in self.files])
        if find_library() is None:
            shown.append("characters by language: not counted; they need pip install 'bertkit[clean]'")
        if script := self.needs_accents:
            shown.append(f"{script} has vowels or tones that an uncased vocabulary strips as accents: --accents keep")
        return [*shown, f"suggested size of the vocabulary: {self.vocab_size:,}"]


def inspect_files(
    files: Sequence[Path],
    field: str | None = None,
    *,
    against: Sequence[Path] = (),
    near_duplicates: bool = False,
) -> CorpusReport:
    """Read ``files`` completely and count; a file that cannot be read is reported and does not stop the others.

    ``field`` has the text of a record. Bytes that are not UTF-8 are counted. Texts of the evaluation files ``against``
    are looked for. With ``near_duplicates`` documents that repeat most of an earlier one are counted.
    """
    if not files:
        raise usage_error("name at least one text file to check, such as texts.jsonl.")
    for file in files:
        check_text_file(file)
    reading = ReadOptions(field=field, on_bad_bytes="replace")
    texts = EvaluationTexts(against)
    lines, near = _LineCounter(), DuplicateDocuments("near") if near_duplicates else None
    inspected = [_inspect(file, reading, _Tally(texts, lines, near)) for file in files]
    for (report, _), duplicates in zip(inspected, count_duplicates([hashes for _, hashes in inspected]), strict=True):
        report.counts.duplicates = duplicates
    return CorpusReport(files=tuple(report for report, _ in inspected), overlaps=texts.reports())


def _inspect(file: Path, reading: ReadOptions, tally: _Tally) -> tuple[FileReport, array[int]]:
    log = ReadLog(ByteStream(file))
    problem = ""
    try:
        for _, document in by_document(read_chunks(file, reading, log)):
            tally.add(document)
    except BertkitError as error:
        problem = str(error)
    counts = tally.counts
    if not problem and counts.documents == counts.blank_documents:
        problem = f"{file} has no text."
    counts.invalid_characters = log.decoding.replaced
    # The U+FFFD that replaced invalid bytes of the text were counted with its own; those of a title in JSON were not.
    counts.replacement_characters = max(0, counts.replacement_characters - log.decoding.replaced)
    report = FileReport(
        file=str(file),
        encoding=_encoding(log, counts),
        origin=log.origin,
        boundary=log.boundary,
        sentence_lines=log.sentence_lines,
        counts=counts,
        histogram=tally.histogram,
        scripts=tally.scripts.counts(),
        languages=tally.languages.counts(),
        problem=problem or (f"{log.decoding.first_bad} is not valid UTF-8." if log.decoding.first_bad else ""),
    )
    return report, tally.hashes


def _encoding(log: ReadLog, counts: Counts) -> str:
    if not counts.documents:
        return "unknown encoding"
    if counts.invalid_characters:
        return "not all UTF-8"
    return "UTF-8 with a byte order mark" if log.decoding.has_byte_order_mark else "UTF-8"


class _LineCounter:
    """Counts lines that occurred before. Up to two million different lines are remembered, in 160 MB."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def add(self, text: str) -> int:
        """The repeated lines of ``text``."""
        repeated = 0
        for value in hash_lines(text):
            if value in self._seen:
                repeated += 1
            elif len(self._seen) < _MOST_LINES:
                self._seen.add(value)
        return repeated


@dataclass
class _Tally:
    """The counts of one file while it is read."""

    texts: EvaluationTexts
    lines: _LineCounter
    near: DuplicateDocuments | None
    counts: Counts = field(default_factory=Counts)
    histogram: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    scripts: ScriptCounter = field(default_factory=ScriptCounter)
    languages: LanguageCounter = field(default_factory=LanguageCounter)
    hashes: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, document: Iterable[TextChunk]) -> None:
        self.counts.documents += 1
        text_hash = DocumentHash()
        self.texts.start_document()
        if self.near is not None:
            self.near.start_document()
        characters = 0
        overlaps = False
        for chunk in document:
            text_hash.add(chunk.text)
            characters += len(chunk.text)
            self.scripts.add(chunk.text)
            self.languages.add(chunk.text)
            self.counts.repeated_lines += self.lines.add(chunk.text)
            overlaps = self.texts.occur_in(chunk.text) or overlaps
            if self.near is not None:
                self.near.add(chunk.text)
            self.counts.sentences += len(chunk.sentences())
            self.counts.control_characters += len(_CONTROL.findall(chunk.text))
            self.counts.replacement_characters += chunk.text.count("\ufffd")
        self.counts.overlapping_documents += overlaps
        self.counts.blank_documents += text_hash.is_blank
        self.counts.characters += characters
        self.histogram[bisect(_BOUNDS, characters)] += 1
        if text_hash.is_blank:
            return
        self.hashes.append(text_hash.value)
        if self.near is not None:
            self.counts.near_duplicates += self.near.is_repeated()


def _describe(counts: Counts) -> str:
    """``1,717 documents, 25,612,004 characters, 3 duplicates``, without counts of zero."""
    shown = [(each.name.replace("_", " ").removesuffix("s"), getattr(counts, each.name)) for each in fields(counts)]
    return ", ".join(count_of(count, name) for name, count in shown if count) or "nothing"


def _draw_lengths(histogram: Sequence[int]) -> list[str]:
    labels = [*(f"below {bound:,}" for bound in _BOUNDS), f"{_BOUNDS[-1]:,} and more"]
    return _draw("documents by characters", dict(zip(labels, histogram, strict=True)))


def _draw_most(title: str, files: Iterable[Mapping[str, int]]) -> list[str]:
    """The most frequent names of all files together, and the others as one; nothing if there are none."""
    counts: Counter[str] = Counter()
    for each in files:
        counts.update(each)
    rows = dict(counts.most_common(_MOST_BARS))
    if others := len(counts) - len(rows):
        rows[f"{others} others"] = counts.total() - sum(rows.values())
    return _draw(title, rows) if rows else []


def _draw(title: str, rows: Mapping[str, int]) -> list[str]:
    longest = max([1, *rows.values()])
    width = max(9, *(len(f"{count:,}") for count in rows.values()))
    return [
        title,
        *(
            f"  {label:18} {count:{width},} {'#' * -(-count * _BAR // longest)}".rstrip()
            for label, count in rows.items()
        ),
    ]
