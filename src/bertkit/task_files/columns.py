"""Which columns of an unknown table are the text and the label, guessed from their names and cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bertkit.errors import BertkitError, data_error, list_names, usage_error
from bertkit.formats.cells import Structure, find_decimal_comma
from bertkit.formats.tables import Table
from bertkit.task_files.files import Columns
from bertkit.task_files.indicators import are_indicators, split_names
from bertkit.task_files.labels import are_numbers, are_whole_numbers

_SAMPLE_ROWS = 2000
_MOST_CLASSES = 50
_FEWEST_INDICATORS = 3
"""Fewer columns of 0 and 1 may be something else than labels."""

_LABEL_NAMES = (
    *("label", "labels", "gold_label", "gold", "target", "class", "category", "sentiment", "score", "stars"),
    *("rating", "similarity", "intent", "topic", "emotion"),
)
_TEXT_NAMES = ("text", "sentence", "review", "content", "document")
"""A column with such a name is the text, also beside a longer one, such as what an annotator remarks on it."""

_PAIR_NAMES = (
    *(("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("question", "context")),
    *(("question", "answer"), ("query", "passage"), ("claim", "evidence"), ("text", "pair"), ("text", "text_pair")),
)
_MACHINE_MADE = re.compile(
    r"\d{4}-\d\d-\d\d([T ].*)?|https?://\S+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)
ID_NAMES = ("id", "idx", "uid", "guid", "fold-ind", "index", "__index_level_0__")
"""Names of columns of ids, in lower case, the likeliest first; the last two may be the index that pandas writes."""


@dataclass(frozen=True, kw_only=True)
class _Profile:
    name: str
    cells: Sequence[str]

    @property
    def mean_length(self) -> float:
        return sum(map(len, self.cells)) / max(len(self.cells), 1)

    @property
    def distinct(self) -> int:
        return len({cell.strip() for cell in self.cells} - {""})

    @property
    def is_text(self) -> bool:
        filled = [cell for cell in self.cells if cell.strip()]
        return bool(filled) and not are_numbers(filled) and not any(isinstance(cell, Structure) for cell in filled)

    @property
    def is_measured(self) -> bool:
        """Whether the cells are numbers and no ids, which are whole and differ."""
        filled = [cell for cell in self.cells if cell.strip()]
        if not filled or not are_numbers(filled):
            return False
        return not are_whole_numbers(filled) or len(set(filled)) < len(filled)

    @property
    def is_written_by_people(self) -> bool:
        """Whether a cell is not a date, a web address or a UUID, which are often longer than a short text."""
        return not all(_MACHINE_MADE.fullmatch(cell.strip()) for cell in self.cells if cell.strip())


def guess_columns(table: Table, *, text: str | None, pair: str | None, label: str | None) -> Columns:
    """The columns of a table; given ones are used as they are.

    The text is the column with the name of one, such as ``text`` or ``review``, else that with the longest cells, but
    beside others it is no column of dates, web addresses or UUIDs.
    A second text is used only where the names of two columns belong together (``sentence1`` and ``sentence2``,
    ``premise`` and ``hypothesis``). The label is the column with such a name, or the only column with few different
    values. Three columns of 0 and 1 or more, and nothing else that may be a label, have a label each; ``label`` names
    such columns with commas between. Several other candidates are an error that asks for one.
    """
    labels = split_names(label, table.columns)
    _check_names(table, text, pair, *labels)
    profiles = _profiles(table)
    rows = len(profiles[0].cells)
    taken = {name for name in (text, pair, *labels) if name is not None}
    by_name = label_by_name([each.name for each in profiles if each.name not in taken])
    named = labels or ((by_name,) if by_name else ())
    texts = [each for each in profiles if each.is_text and each.name not in taken.union(named)]
    if text is None:
        text, pair = _guess_texts(table, texts, pair)
    elif pair is None:
        pair = _partner(text, [each.name for each in texts])
    others = [each for each in profiles if each.name not in (text, pair)]
    answers = named or _labels_by_content(table, others, rows)
    names = [each.name for each in others if each.name not in answers]
    return Columns(first=text, second=pair, id=find_id(names)).with_labels(*answers)


def guess_texts(table: Table, *, text: str | None, pair: str | None) -> Columns:
    """The columns of the texts and of the id, as ``guess_columns`` finds them, in a table that needs no label.

    With a given ``text`` there is a second one only if ``pair`` names it.
    """
    _check_names(table, text, pair)
    profiles = _profiles(table)
    taken = {text, pair, label_by_name([each.name for each in profiles])}
    if text is None:
        texts = [each for each in profiles if each.is_text and each.name not in taken]
        text, pair = _guess_texts(table, texts, pair)
    return Columns(first=text, second=pair, id=find_id(table.columns))


def _check_names(table: Table, *names: str | None) -> None:
    """Raise a usage error for a column that ``table`` does not have, or that is named twice."""
    given = [name for name in names if name is not None]
    table.require(*given)
    for name in given:
        if given.count(name) > 1:
            raise usage_error(f'{table.path}: column "{name}" is named twice. --text, --pair and --label differ.')


def _profiles(table: Table) -> list[_Profile]:
    """The columns with their cells in the first rows."""
    rows = table.sample(_SAMPLE_ROWS)
    if not rows:
        raise no_rows(table)
    _check_first_line(table, rows[0])
    return [
        _Profile(name=name, cells=cells) for name, cells in zip(table.columns, zip(*rows, strict=True), strict=True)
    ]


def no_rows(table: Table) -> BertkitError:
    """The error about a table that ends after the names of its columns."""
    return data_error(f"{table.path} has a line of column names and no rows.")


def _check_first_line(table: Table, cells: Sequence[str]) -> None:
    """Raise a data error for a line that may be names or values: a class called "label" in a column called so."""
    if not table.form.names or table.form.kind == "lines" or any(are_numbers([cell]) for cell in cells):
        return
    if name := label_by_name(cells):
        raise data_error(
            f'{table.path}, line 1: "{name}" may be the name of its column, or a label as in other rows. Rename the '
            "column, or add a line of column names."
        )


def _guess_texts(table: Table, texts: Sequence[_Profile], pair: str | None) -> tuple[str, str | None]:
    if not texts:
        columns = list_names(table.columns)
        raise usage_error(
            f"{table.path} has no column that looks like text. Its columns: {columns}. Name it: --text COLUMN."
        )
    texts = [each for each in texts if each.name.casefold() not in ID_NAMES] or texts
    texts = [each for each in texts if each.is_written_by_people] or texts
    ordered = sorted(texts, key=lambda each: (_rank_name(each.name), -each.mean_length))
    if pair is None:
        names = [each.name for each in texts]
        pairs = [(first, _partner(first, names)) for first in names]
        for likely in ordered:
            for first, second in pairs:
                if second is not None and likely.name in (first, second):
                    return first, second
    return ordered[0].name, pair


def _rank_name(name: str) -> int:
    """The place of a name among those of texts; the same last place for all others."""
    known = name.casefold()
    return _TEXT_NAMES.index(known) if known in _TEXT_NAMES else len(_TEXT_NAMES)


def _partner(first: str, names: Iterable[str]) -> str | None:
    """The column whose name makes it the second text to ``first``, the likeliest if there are several."""
    seconds = [second for known, second in _PAIR_NAMES if known == first.casefold()]
    counterpart = _counterpart(first)
    if counterpart is None and not seconds:
        return None  # most columns: a look at all others for each of 10,000 would take a minute
    names = list(names)
    return counterpart if counterpart in names else first_named(seconds, names)


def _counterpart(name: str) -> str | None:
    """``sentence2`` for ``sentence1``, ``text_b`` for ``text_a``, ``second_text`` for ``first_text``.

    None for the number of a column without a name.
    """
    if name.isdecimal():
        return None
    for pattern, other in ((r"1(?=\D*$)", "2"), (r"(?<=_)a$", "b"), (r"(?<=_)A$", "B"), (r"^first(?=_)", "second")):
        replaced, count = re.subn(pattern, other, name)
        if count:
            return replaced
    return None


def looks_like_name(cell: str) -> bool:
    """Whether a cell of the first line can only be the name of a column: one short word."""
    return re.fullmatch(r"[\w.-]{1,40}", cell) is not None


def first_named(known: Sequence[str], columns: Iterable[str]) -> str | None:
    """The column with the first of the ``known`` names that occurs, in any case; None without one."""
    by_name = {column.casefold(): column for column in columns}
    return next((by_name[name] for name in known if name in by_name), None)


def label_by_name(columns: Iterable[str]) -> str | None:
    """The column with a name that labels have; None without one."""
    return first_named(_LABEL_NAMES, columns)


def find_score(table: Table, columns: Collection[str]) -> str | None:
    """The one of ``columns`` with the score of two texts: it has a name that labels have, or the only numbers.

    None without one. Several columns of numbers are a usage error.
    """
    if name := label_by_name(columns):
        return name
    profiles = [each for each in _profiles(table) if each.name in columns]
    numbers = [each.name for each in profiles if each.is_measured]
    if len(numbers) > 1:
        raise usage_error(
            f"{table.path}: the score of two texts may be {list_names(numbers[:-1])} or {numbers[-1]}. Name it: "
            "--label COLUMN; for pairs without a score leave these columns out."
        )
    for each in () if numbers else profiles:
        if cell := find_decimal_comma([cell.strip() for cell in each.cells if cell.strip()]):
            raise data_error(
                f'{table.path}: the values of column "{each.name}", such as {cell}, look like numbers with a comma. '
                "Write 1,5 as 1.5, or leave the column out."
            )
    return numbers[0] if numbers else None


def find_id(names: Iterable[str]) -> str | None:
    """The column with a name that ids have; None without one."""
    return first_named(ID_NAMES, names)


def _labels_by_content(table: Table, profiles: Sequence[_Profile], rows: int) -> tuple[str, ...]:
    most = max(2, min(_MOST_CLASSES, rows // 2))
    profiles = [each for each in profiles if each.name.casefold() not in ID_NAMES]
    likely = tuple(each.name for each in profiles if 2 <= each.distinct <= most and each.is_written_by_people)
    indicators = tuple(each.name for each in profiles if are_indicators(each.cells))
    if len(likely) == 1:
        return likely
    if likely and len(indicators) >= _FEWEST_INDICATORS and set(likely) <= set(indicators):
        return indicators
    if likely:
        raise usage_error(
            f"{table.path}: the label may be {list_names(likely[:-1])} or {likely[-1]}. Name it: --label COLUMN. "
            "Several labels per text are in one column, such as long;dull, or in a column of 0 and 1 for each: "
            "--label COLUMN,COLUMN."
        )
    numbers = [each.name for each in profiles if each.is_measured]
    if len(numbers) == 1:
        return (numbers[0],)
    if not profiles:
        raise usage_error(
            f"{table.path} has texts and no labels: its columns are {list_names(table.columns)}. Add a column of "
            "labels; a comma, a semicolon, a tab or | separates columns."
        )
    columns = list_names([each.name for each in profiles])
    raise usage_error(
        f"{table.path} has no column that looks like a label: the columns beside the text are {columns}. Name it: "
        "--label COLUMN."
    )
