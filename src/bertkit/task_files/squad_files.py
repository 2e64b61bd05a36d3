"""Questions about contexts in files: SQuAD's JSON, or a table with a question per row.

A fault of a single question is repaired, or the question is left out of training. It is counted and reported in both
cases, and the question stays in an evaluation.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Literal, NamedTuple

from bertkit.errors import count_of, data_error, did_you_mean, list_names, verb_of
from bertkit.formats.compression import ByteStream
from bertkit.formats.lines import at_line, at_row
from bertkit.formats.tables import Table, require_text
from bertkit.storage.json_text import parse_json
from bertkit.storage.suffixes import suffix_of
from bertkit.task_files.files import Columns

Fault = Literal[
    "moved",
    "found",
    "not found",
    "repeated",
    "blank",
    "empty",
    "contradictory",
    "unmarked",
    "without answer",
    "unlabelled",
]
Faults = Counter[Fault]

COLUMNS = Columns(first="question", second="context", label="answer", id="id")
"""The columns of a table with a question per row; an ``answer_start`` column is read too, and ``answers``, the lists of
texts and places that Hugging Face's ``datasets`` has instead of both."""

_NOT_FOUND = -1


class GoldAnswer(NamedTuple):
    """``text`` at the character ``start`` of the context; -1 if it is not there, or is there more than once."""

    text: str
    start: int

    @property
    def is_placed(self) -> bool:
        """Whether its place is known, so that it can be trained on."""
        return self.start != _NOT_FOUND


@dataclass(frozen=True, slots=True)
class SpanExample:
    """A question about a context. ``answers`` is None if they are not known, and empty if there is no answer.

    ``impossible`` is the mark in the file, which may contradict ``answers``.
    """

    id: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None = None
    impossible: bool = False

    @property
    def first(self) -> str:
        """The question."""
        return self.question

    @property
    def second(self) -> str:
        """The context."""
        return self.context

    @property
    def label(self) -> str | None:
        """The first answer, "" for no answer, or None if the answers are not known."""
        if self.answers is None:
            return None
        return self.answers[0].text if self.answers else ""

    @property
    def texts(self) -> tuple[str, ...]:
        """All gold answers."""
        return tuple(answer.text for answer in self.answers or ())

    @property
    def target(self) -> GoldAnswer | None:
        """The answer to train on: the first with a known place."""
        return next((answer for answer in self.answers or () if answer.is_placed), None)

    @property
    def contradicts_itself(self) -> bool:
        """Whether it is marked as impossible and has answers."""
        return self.impossible and bool(self.answers)


def read_questions(path: Path, faults: Faults) -> Iterator[SpanExample]:
    """The questions of a ``.json`` file or of a table; their faults are added to ``faults``."""
    for example in _read_squad(path) if is_json_object(path) else _read_table(path):
        yield _repair(example, faults)


def make_ids_unique(examples: Iterable[SpanExample], faults: Faults) -> Iterator[SpanExample]:
    """The same examples, with ``#2``, ``#3`` and so on after an id that has occurred before."""
    seen: Counter[str] = Counter()
    for example in examples:
        seen[example.id] += 1
        if seen[example.id] == 1:
            yield example
            continue
        faults["repeated"] += 1
        while (fresh := f"{example.id}#{seen[example.id]}") in seen:
            seen[example.id] += 1
        seen[fresh] += 1
        yield replace(example, id=fresh)


def describe_faults(split: str, faults: Faults) -> list[str]:
    """A sentence for every kind of fault that occurred."""
    sentences: Mapping[Fault, str] = {
        "moved": "{answers} of {split} {were} not where the file says and {were} moved to the only place where the "
        "text occurs",
        "found": "{answers} of {split} {have} no place in the file and {were} found where the text occurs, once",
        "not found": "{answers} of {split} {are} not in the context, or more than once and without a right place in "
        "the file: not trained on, and counted by an evaluation",
        "repeated": "{questions} of {split} {have} the id of another one, and {are} named ID#2, ID#3, ...",
        "blank": "{questions} of {split} {are} empty",
        "empty": "{questions} of {split} {have} an empty context",
        "contradictory": "{questions} of {split} {are} marked as impossible and {have} answers: not trained on, and an "
        "evaluation expects the answers",
        "unmarked": "{questions} of {split} {have} an empty list of answers and {are} not marked as impossible: not "
        "trained on",
        "without answer": "{questions} of {split} {have} no answer and {are} left out: every question of the task "
        "has one",
        "unlabelled": "{questions} of {split} {have} no list of answers and {are} left out: write an empty one where "
        "there is no answer",
    }
    return [_agree(text, faults[kind], split) for kind, text in sentences.items() if faults[kind]]


def _agree(sentence: str, count: int, split: str) -> str:
    """The sentence about ``count`` answers or questions of a split."""
    return sentence.format(
        answers=count_of(count, "answer"),
        questions=count_of(count, "question"),
        split=split,
        are=verb_of(count, "is", "are"),
        were=verb_of(count, "was", "were"),
        have=verb_of(count, "has", "have"),
    )


def is_squad(path: Path) -> bool:
    """Whether a file is in SQuAD's format: JSON (plain or compressed), no list of records, with "paragraphs" early."""
    return is_json_object(path) and b'"paragraphs"' in _first_block(path)


def is_json_object(path: Path) -> bool:
    """Whether a file is one JSON object, plain or compressed, and not a list of questions, or a question per line."""
    if suffix_of(path) != ".json":
        return False
    begin = _first_block(path).removeprefix(BOM_UTF8).lstrip()
    return not begin.startswith(b"[") and (b'"paragraphs"' in begin or b'"context"' not in begin)


def _first_block(path: Path) -> bytes:
    """The first bytes of a file, decompressed: a published file is one line of 30 MB."""
    return next(iter(ByteStream(path)), b"")


def has_question_columns(table: Table) -> bool:
    """Whether a table has a question, a context and an answer, or several, per row.

    A data error if it has them under names with capitals, which would be taken for texts with a label.
    """
    has_exact, has_any = map(_are_of_questions, (table.columns, [name.casefold() for name in table.columns]))
    if has_any and not has_exact:
        raise data_error(
            f"{table.path} has the columns {list_names(table.columns)}: for questions rename them to question, context "
            "and answer, in lower case; for another task name them with --text, --pair and --label."
        )
    return has_exact


def _are_of_questions(columns: Sequence[str]) -> bool:
    return {"question", "context"} <= set(columns) and not {"answer", "answers"}.isdisjoint(columns)


def _repair(example: SpanExample, faults: Faults) -> SpanExample:
    """The example with each answer at its place in the context."""
    faults["blank"] += not example.question.strip()
    faults["empty"] += not example.context.strip()
    faults["contradictory"] += example.contradicts_itself
    faults["unlabelled"] += example.answers is None
    faults["unmarked"] += example.answers == () and not example.impossible
    if not example.answers:
        return example
    placed = tuple(_place(answer, example.context) for answer in example.answers)
    for before, after in zip(example.answers, placed, strict=True):
        faults["moved"] += before.is_placed and before != after and after.is_placed
        faults["found"] += not before.is_placed and after.is_placed
        faults["not found"] += not after.is_placed
    return replace(example, answers=placed)


def _place(answer: GoldAnswer, context: str) -> GoldAnswer:
    """The answer where the file says, or else where its text occurs, if it occurs once."""
    text, start = answer
    if text.strip() and start >= 0 and context.startswith(text, start):
        return answer
    found = context.find(text) if text.strip() else _NOT_FOUND
    once = found != _NOT_FOUND and context.find(text, found + 1) == _NOT_FOUND
    return GoldAnswer(text, found if once else _NOT_FOUND)


def _read_squad(path: Path) -> Iterator[SpanExample]:
    content = read_json_file(path)
    for a, article in enumerate(_list(content, "data", str(path))):
        at = f"{path}, data[{a}]"
        for p, paragraph in enumerate(_list(article, "paragraphs", at)):
            place = f"{at}.paragraphs[{p}]"
            context = _text(paragraph, "context", place)
            for q, question in enumerate(_list(paragraph, "qas", place)):
                yield _question(question, context, f"{place}.qas[{q}]")


def read_json_file(path: Path) -> object:
    """The content of a JSON file, plain or compressed; a fault is a data error with its line."""
    blocks = b"".join(ByteStream(path))
    try:
        content: object = parse_json(blocks.decode("utf-8-sig"), allow_nan=False)
        return content
    except UnicodeDecodeError as error:
        raise data_error(f"{path} is not UTF-8 (byte {error.start + 1:,}). Save the file as UTF-8.") from error
    except json.JSONDecodeError as error:
        raise data_error(f"{at_line(path, error.lineno)}, column {error.colno}: not JSON ({error.msg}).") from error
    except ValueError as error:
        raise data_error(f"{path} is not JSON that can be read: {error}.") from error


def _question(record: object, context: str, place: str) -> SpanExample:
    question, id = _text(record, "question", place), _field(record, "id", place)
    assert isinstance(record, dict), "or there is no question"
    answers = None
    if "answers" in record:
        found = _list(record, "answers", place)
        answers = tuple(_answer(each, f"{place}.answers[{number}]") for number, each in enumerate(found))
    return SpanExample(str(id), question, context, answers, impossible=bool(record.get("is_impossible", False)))


def _answer(record: object, place: str) -> GoldAnswer:
    text, start = _text(record, "text", place), _field(record, "answer_start", place)
    if isinstance(start, float) and start.is_integer():  # as pandas writes a column in which one number is missing
        start = int(start)
    if not isinstance(start, int):
        raise data_error(f'{place}: "answer_start" is {start!r}, not a whole number.')
    return GoldAnswer(text, start)


def _field(record: object, name: str, place: str) -> object:
    if not isinstance(record, dict):
        raise data_error(f'{place}: not an object with "{name}". Questions must be in the format of SQuAD.')
    if name not in record:
        raise data_error(f'{place} has no "{name}".{did_you_mean(name, map(str, record))}')
    return record[name]


def _list(record: object, name: str, place: str) -> list[object]:
    value = _field(record, name, place)
    if not isinstance(value, list):
        raise data_error(f'{place}: "{name}" is not a list.')
    return value


def _text(record: object, name: str, place: str) -> str:
    value = _field(record, name, place)
    if not isinstance(value, str):
        raise data_error(f'{place}: "{name}" is {value!r:.40}, not a text.')
    return value


def _read_table(path: Path) -> Iterator[SpanExample]:
    """One question per row; an empty cell means no answer. Without the column the answers are not known."""
    table = Table(path)
    further = ("answers",) if "answers" in table.columns else ("answer", "answer_start")
    used = ["question", "context", *(name for name in (*further, "id") if name in table.columns)]
    for row in table.rows(*used):
        cells = dict(zip(used, row.cells, strict=True))
        lists, answers = cells.pop("answers", None), None
        for name, cell in cells.items():
            require_text(cell, name, path, row.line)
        if lists is not None:
            answers = tuple(_answers_of_datasets(lists, at_row(path, row.line)))
        elif (text := cells.get("answer")) is not None:
            answers = (GoldAnswer(text, _offset(cells.get("answer_start", ""), path, row.line)),) if text else ()
        id = cells.get("id") or str(row.line)
        yield SpanExample(id, cells["question"], cells["context"], answers, impossible=answers == ())


def _answers_of_datasets(cell: str, place: str) -> Iterator[GoldAnswer]:
    """The answers in an object of two lists, ``text`` and ``answer_start``, or in a list of objects with both.

    No text is no answer.
    """
    try:
        record = parse_json(cell)
    except ValueError:
        record = None
    if isinstance(record, list):
        return (_answer(each, f"{place}, answers[{n}]") for n, each in enumerate(record))
    if not isinstance(record, dict):
        found = shorten(cell, 60) or "empty"
        raise data_error(f'{place}: "answers" is {found}, not an object with "text" and "answer_start".')
    texts, starts = (_list(record, name, f"{place}, answers") for name in ("text", "answer_start"))
    if len(texts) != len(starts):
        raise data_error(f"{place}: answers has {len(texts)} texts and {len(starts)} places.")
    pairs = enumerate(zip(texts, starts, strict=True))
    return (_answer({"text": text, "answer_start": start}, f"{place}, answers[{n}]") for n, (text, start) in pairs)


def _offset(cell: str, path: Path, line: int) -> int:
    if not cell.strip():
        return _NOT_FOUND
    found = re.fullmatch(r"(\d+)(\.0*)?", cell.strip())  # pandas writes 3.0 where another row has no number
    if not found:
        raise data_error(f'{at_row(path, line)}: answer_start is "{cell}", not a whole number.')
    return int(found[1])
