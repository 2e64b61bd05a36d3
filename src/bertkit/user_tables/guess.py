"""A task from a user's own files: columns, type and classes are guessed, described in a sentence, and can be given."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from bertkit.errors import data_error, list_names, usage_error
from bertkit.formats.encodings import UTF_8
from bertkit.formats.lines import at_row
from bertkit.formats.splits import find_splits
from bertkit.formats.tables import Format, Table
from bertkit.metrics.entities import NO_TYPE, find_entities, spell_tag
from bertkit.task_files.choice_columns import find_choices, find_columns, guess_spelling, read_choice_cells
from bertkit.task_files.columns import guess_columns
from bertkit.task_files.conll_files import COLUMNS as TAG_COLUMNS
from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_files.indicators import UNKNOWN, are_indicators, split_names
from bertkit.task_files.labels import (
    Labels,
    are_numbers,
    check_spelling,
    collect_labels,
    merge_spellings,
    sort_labels,
)
from bertkit.task_files.squad_files import COLUMNS as QUESTION_COLUMNS
from bertkit.task_files.squad_files import has_question_columns, is_squad
from bertkit.task_files.tag_files import holds_tags, read_sentences
from bertkit.task_types.base import FileTask
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.multiple_choice import MultipleChoiceTask
from bertkit.task_types.question_answering import QuestionAnsweringTask
from bertkit.task_types.regression import SMALLEST_UNIT, Numbers, RegressionTask, check_number
from bertkit.task_types.tagging import TaggingTask
from bertkit.task_types.text_classification import TextClassificationTask
from bertkit.task_types.text_task import TextTask
from bertkit.user_tables.label_column import Kind, LabelColumn, describe_labels, examine_labels, list_classes
from bertkit.user_tables.similarity_tables import guess_similarity

_HELDOUT = 0.1
_SAMPLE_ROWS = 100
_SPELLINGS = {
    "number": "the number of the right one, counted from 0",
    "number from 1": "the number of the right one, counted from 1",
    "letter": "the letter of the right one",
    "text": "the text of the right one",
}


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A task made from files, and a ``sentence`` that says how the files were understood.

    Tables of texts and of choices stay open in the task, so that they are not read a second time.
    """

    task: FileTask
    sentence: str


def guess(
    train: Path | Sequence[Path],
    *,
    dev: Path | None = None,
    test: Path | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    max_length: int = 128,
    allow_rare_labels: bool = False,
    fold_labels: bool = False,
    encoding: str = UTF_8,
) -> Guess:
    """The task of the given files, or of the splits of a folder.

    ``text``, ``pair``, ``label`` (columns) and ``kind`` replace what is guessed. Every row of every file is checked, so
    that a wrong one is an error before anything is trained. Without a dev file, a tenth of the texts of every class is
    held out. With ``fold_labels`` labels that differ in case or spacing only are one. ``encoding`` is that of tables of
    texts.
    """
    given = [Path(train)] if isinstance(train, str | Path) else [Path(path) for path in train]
    paths = _splits(given, dev, test)
    first, name = paths["train"][0], f"files:{given[0].resolve().name}"
    if kind == "similarity":
        similarity, sentence = guess_similarity(
            paths, name, text=text, pair=pair, label=label, max_length=max_length, heldout=_HELDOUT, encoding=encoding
        )
        _check_rows(similarity, similarity.files.splits.keys())
        return Guess(task=similarity, sentence=sentence)
    columns_given = any(each is not None for each in (text, pair, label, kind))
    if not columns_given and is_squad(first):
        _refuse_encoding(first, encoding)
        return _guess_questions(paths, name)
    opened = TaskFiles(encoding=encoding)
    table = opened.table(first)
    if not columns_given and has_question_columns(table):
        _refuse_encoding(first, encoding)
        return _guess_questions(paths, name)
    if not columns_given and holds_tags(table, encoding):
        _refuse_encoding(first, encoding)
        return _guess_tags(paths, name, max_length)
    others = [name for name in table.columns if name not in (text, *split_names(label, table.columns))]
    choices = find_choices(others)
    if kind is None and pair is None and choices and not _hold_indicators(table, choices):
        columns = find_columns(table, choices, prompt=text, label=label)
        chosen, sentence = _build_choices(table, _files(columns, paths, opened), choices, max_length)
        return Guess(task=replace(chosen, name=name), sentence=sentence)
    columns = guess_columns(table, text=text, pair=pair, label=label)
    files = _files(columns, paths, opened)
    labels = collect_labels(files.read(first.name, "train"))
    column = examine_labels(first, columns, labels, kind)
    if column.kind != "number" and not columns.labels:
        column = replace(column, labels=merge_spellings(column.labels)) if fold_labels else column
        if not allow_rare_labels:
            check_spelling(column.labels)
    task = _build(first, files, column, max_length, pair=columns.second is not None, fold_labels=fold_labels)
    _check_rows(task, files.splits.keys() - {"train"})
    return Guess(task=replace(task, name=name), sentence=_describe(table, columns, column))


def _hold_indicators(table: Table, columns: Sequence[str]) -> bool:
    """Whether all of these columns have 0 and 1 in the first rows, and so are no choices."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.sample(_SAMPLE_ROWS)]
    return all(are_indicators([row[name] for row in rows]) for name in columns)


def _refuse_encoding(path: Path, encoding: str) -> None:
    """Raise a usage error for an encoding of a file of questions or tags, which is read as UTF-8."""
    if encoding != UTF_8:
        raise usage_error(
            f"--encoding is for tables of texts; {path} has questions or tags. Convert it: iconv -f {encoding} -t UTF-8"
        )


def _check_rows(task: FileTask, splits: Iterable[str]) -> None:
    """Read every row, so that a wrong one is an error now."""
    for split in splits:
        for _ in task.reader.rows(split):
            pass


def _build_choices(
    table: Table, files: TaskFiles, choices: tuple[str, ...], max_length: int
) -> tuple[MultipleChoiceTask, str]:
    """The multiple-choice task of the files, all rows of which are read, and how they were understood."""
    columns = files.splits["train"].columns
    tables = files.tables(table.path.name, "train")
    rows = [cells for each in tables for cells in read_choice_cells(each, columns, choices)]
    labelled = [cells for cells in rows if cells.label]
    if not labelled:
        raise data_error(f'{table.path}: no row has a label in column "{columns.label}".')
    task = MultipleChoiceTask(
        name=f"files:{table.path.name}",
        choices=choices,
        spelling=guess_spelling(labelled),
        max_length=max_length,
        files=files,
        heldout=0.0 if "dev" in files.splits else _HELDOUT,
    )
    _check_rows(task, files.splits)
    named = choices[0] if len(choices) == 1 else f"{choices[0]} to {choices[-1]}"
    stem = f", beginning of the choices = {columns.second}" if columns.second else ""
    id = f", id = {columns.id}" if columns.id else ""
    least, most = min(len(cells.choices) for cells in rows), max(len(cells.choices) for cells in rows)
    count = str(most) if least == most else f"{least} to {most}"
    return task, (
        f"prompt = {columns.first}{stem}, choices = {named} ({count} each), "
        f"label = {columns.label} ({_SPELLINGS[task.spelling]}){id}{_describe_format(table.form)}"
        f"{_describe_unread(table, (*columns.used(), *choices))}"
    )


def _guess_questions(paths: Mapping[str, Sequence[Path]], name: str) -> Guess:
    """Questions about contexts; if some have no answer, the model may predict that there is none."""
    splits = {split: _split_of(files, QUESTION_COLUMNS) for split, files in paths.items()}
    task = QuestionAnsweringTask(
        name=name, files=TaskFiles(splits=splits), null=True, heldout=0.0 if "dev" in splits else _HELDOUT
    )
    rows = {split: list(task.reader.rows(split)) for split in splits}
    without = sum(example.answers == () and example.impossible for example in rows["train"])
    task = replace(task, null=without > 0, rules="v2" if without else "v1")
    contexts = len({example.context for example in rows["train"]})
    sentence = f"{len(rows['train']):,} questions about {contexts:,} contexts, {without:,} of them without an answer"
    return Guess(task=task, sentence=sentence)


def _guess_tags(paths: Mapping[str, Sequence[Path]], name: str, max_length: int) -> Guess:
    """Words with tags; the types of entities are those that occur in train."""
    splits = {split: _split_of(files, TAG_COLUMNS) for split, files in paths.items() if files}
    sentences = [sentence for path in paths["train"] for sentence in read_sentences(path)]
    if all(word.isdecimal() for sentence in sentences for word in sentence.words):
        raise data_error(f"{paths['train'][0]}: the first column has numbers alone, and no words. Words come first.")
    types = Counter(entity.type for sentence in sentences for entity in find_entities(sentence.tags))
    if not types:
        raise data_error(f"{paths['train'][0]}: every word has the tag O. There must be at least one entity.")
    if "" in types and len(types) > 1:
        mixed = f"{types['']:,} entities have bare tags such as B, and {types.total() - types['']:,} have a type"
        raise data_error(f"{paths['train'][0]}: {mixed}, such as B-{max(types)}. Give all of them a type, or none.")
    tags = ("O", *(spell_tag(letter, type) for type in sort_labels(types) for letter in "BI"))
    heldout = 0.0 if "dev" in splits else _HELDOUT
    task = TaggingTask(name=name, labels=tags, files=TaskFiles(splits=splits), max_length=max_length, heldout=heldout)
    _check_rows(task, splits.keys() - {"train"})
    named = Counter({type or NO_TYPE: count for type, count in types.items()})
    return Guess(task=task, sentence=f"{len(sentences):,} sentences with tags of words: {list_classes(named)}")


def _splits(train: Sequence[Path], dev: Path | None, test: Path | None) -> dict[str, Sequence[Path]]:
    """The files of each split; a folder given as ``train`` has its own dev and test, unless they are given too."""
    paths: dict[str, Sequence[Path]] = {"train": train}
    if len(train) == 1 and train[0].is_dir():
        paths = dict(find_splits(train[0]))
    given = {"dev": dev, "test": test}
    return paths | {split: [Path(path)] for split, path in given.items() if path is not None}


def _split_of(files: Sequence[Path], columns: Columns) -> Split:
    return Split(files=tuple(str(file.resolve()) for file in files), columns=columns)


def _files(columns: Columns, paths: Mapping[str, Sequence[Path]], opened: TaskFiles) -> TaskFiles:
    """The splits that have files, with their tables, which ``opened`` opens; test files need no label column."""
    splits: dict[str, Split] = {}
    tables: dict[Path, Table] = {}
    for split, files in paths.items():
        if files:
            found = columns
            own = [opened.table(file) for file in files]
            if split == "test" and not _has_labels(own, columns):
                found = found.answered()
            if any(found.id not in table.columns for table in own):
                found = replace(found, id=None)
            splits[split] = replace(_split_of(files, found), may_lack_labels=True)
            tables |= {file.resolve(): table for file, table in zip(files, own, strict=True)}
    made = replace(opened, splits=splits)
    made.adopt(tables)
    return made


def _has_labels(tables: Sequence[Table], columns: Columns) -> bool:
    """Whether a test split has labels: a test set with secret answers has no such column, or -1 in every row.

    A table with some of several columns of labels is a usage error.
    """
    if not any(name in tables[0].columns for name in columns.answers):
        return False
    rows = (row for table in tables for row in table.rows(*columns.answers))
    return any(cell.strip() not in UNKNOWN for row in rows for cell in row.cells)


class _SharedSettings(TypedDict):
    name: str
    pair: bool
    max_length: int
    files: TaskFiles
    heldout: float


def _build(
    path: Path, files: TaskFiles, column: LabelColumn, max_length: int, *, pair: bool, fold_labels: bool
) -> TextTask:
    counts, answers = column.labels.counts, files.splits["train"].columns.answers
    if not counts.total():
        raise data_error(f'{path}: no row has a label in column "{",".join(answers)}".')
    if len(counts) == 1 and counts.total() == column.rows:
        raise data_error(f'{path}: every row has the label "{next(iter(counts))}". There must be two labels or more.')
    shared: _SharedSettings = {
        "name": f"files:{path.name}",
        "pair": pair,
        "max_length": max_length,
        "files": files,
        "heldout": 0.0 if "dev" in files.splits else _HELDOUT,
    }
    if column.kind == "number":
        return RegressionTask(metric="pearson", also=("spearman",), numbers=_scale(path, column.labels), **shared)
    if column.kind == "labels":
        labels = tuple(counts) if column.indicators else sort_labels(counts)
        return MultiLabelTask(labels=labels, separator=column.separator, fold_labels=fold_labels, **shared)
    return TextClassificationTask(
        metric="accuracy",
        also=("macro_f1", "matthews"),
        labels=sort_labels(counts),
        fold_labels=fold_labels,
        **shared,
    )


def _scale(path: Path, labels: Labels) -> Numbers:
    """The scale on which the numbers of train have mean 0 and standard deviation 1."""
    if not are_numbers(labels.counts):
        wrong = next(label for label in labels.counts if not are_numbers([label]))
        where, line = labels.first_seen[wrong]
        raise data_error(f'{at_row(where, line)}: "{wrong}" is not a number. Fix the row, or give --kind classes.')
    for label, (where, line) in labels.first_seen.items():
        check_number(float(label), label, at_row(where, line))
    values = [float(label) for label in labels.counts.elements()]
    spread = statistics.pstdev(values)
    if spread < SMALLEST_UNIT:
        raise data_error(
            f"{path}: all numbers of the label column are {values[0]:g}, or too near to it to be told apart. There "
            "must be at least two."
        )
    return Numbers(origin=statistics.fmean(values), unit=spread)


def _describe(table: Table, columns: Columns, column: LabelColumn) -> str:
    texts = f"text = {columns.first}" + (f", pair = {columns.second}" if columns.second else "")
    id = f", id = {columns.id}" if columns.id else ""
    label = f"label = {','.join(columns.answers)} ({describe_labels(column)})"
    return f"{texts}, {label}{id}{_describe_format(table.form)}{_describe_unread(table, columns.used())}"


def _describe_unread(table: Table, used: Collection[str]) -> str:
    others = [name for name in table.columns if name and name not in used]  # pandas writes its index without a name
    return f"; not read: {list_names(others)}" if others else ""


def _describe_format(form: Format) -> str:
    """What is unusual about the file: its delimiter, and that it has no column names."""
    if form.kind != "delimited":
        return ""
    marks = {";": "; cells are separated by semicolons", "|": "; cells are separated by bars"}
    nameless = "; there is no line of column names, so the columns are numbered" if form.names else ""
    return marks.get(form.delimiter, "") + nameless
