"""The user's own table as a task: columns, kind and classes guessed from the file, said in a sentence, overridable."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bertkit.errors import data_error
from bertkit.formats.lines import at_line
from bertkit.formats.splits import find_splits
from bertkit.formats.splits import holds_tables as holds_tables
from bertkit.formats.splits import tables_of as tables_of
from bertkit.formats.tables import Format, Table
from bertkit.metrics.entities import find_entities
from bertkit.task_types.base import FileTask
from bertkit.task_types.choice_columns import find_choices, find_columns, guess_spelling, read_choice_cells
from bertkit.task_types.columns import guess_columns
from bertkit.task_types.conll_files import COLUMNS as WORDS
from bertkit.task_types.conll_files import holds_tags, read_sentences
from bertkit.task_types.labels import (
    Labels,
    are_numbers,
    are_whole_numbers,
    check_spelling,
    count_labels,
    find_separator,
    in_order,
    may_hold_several,
    split_cells,
)
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.multiple_choice import MultipleChoiceTask
from bertkit.task_types.question_answering import QuestionAnsweringTask
from bertkit.task_types.squad_files import COLUMNS, holds_questions
from bertkit.task_types.squad_files import read_json_file as read_json_file
from bertkit.task_types.tagging import TaggingTask
from bertkit.task_types.task_files import Columns, Split, TaskFiles
from bertkit.task_types.text_classification import Numbers, TextClassificationTask

Kind = Literal["classes", "number", "labels"]

_HELDOUT = 0.1
_MOST_WHOLE_NUMBERS = 20
"""More different whole numbers than this are a quantity and not classes."""

_SHOWN = 8

_SPELLINGS = {
    "number": "the place of the right one, counted from 0",
    "number from 1": "the place of the right one, counted from 1",
    "letter": "the letter of the right one",
    "text": "the text of the right one",
}


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A task made from files, and ``sentence``, what was taken for what."""

    task: FileTask
    sentence: str


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What ``rows`` with a label ask for; ``labels`` are single ones where a cell holds several."""

    kind: Kind
    labels: Labels
    rows: int
    separator: str = ""


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
) -> Guess:
    """The task that the files pose, or the splits of a folder.

    ``text``, ``pair``, ``label`` (columns) and ``kind`` replace what is guessed. Every row of every file is looked at,
    so that what is wrong with one is said before anything is trained. Without a dev, a tenth of the texts of every
    class is held out.
    """
    given = [Path(train)] if isinstance(train, str | Path) else [Path(path) for path in train]
    paths = _splits(given, dev, test)
    first = paths["train"][0]
    if (text, label, kind) == (None, None, None) and holds_questions(first):
        return _guess_questions(paths, f"files:{given[0].resolve().name}")
    if (text, label, kind) == (None, None, None) and holds_tags(first):
        return _guess_tags(paths, f"files:{given[0].resolve().name}", max_length)
    table = Table(first)
    if kind is None and (choices := find_choices(table.columns)):
        columns = find_columns(table, choices, prompt=text, label=label)
        chosen, sentence = _build_choices(table, _files(columns, **paths), choices, max_length)
        return Guess(task=_name(chosen, given[0]), sentence=sentence)
    columns = guess_columns(table, text=text, pair=pair, label=label)
    files = _files(columns, **paths)
    labels = count_labels(files.read(first.name, "train"))
    kind = kind or _guess_kind(first, columns, labels)
    asked = _Asked(kind=kind, labels=labels, rows=labels.counts.total())
    if kind == "labels":
        separator = find_separator(labels) or MultiLabelTask.separator
        asked = replace(asked, labels=split_cells(labels, separator), separator=separator)
    if kind != "number" and not allow_rare_labels:
        check_spelling(asked.labels)
    task = _build(first, files, asked, max_length, pair=columns.second is not None)
    for split in files.splits.keys() - {"train"}:
        for _ in task.rows(split):
            pass
    return Guess(task=_name(task, given[0]), sentence=_describe(table, columns, asked))


def _name(task: FileTask, given: Path) -> FileTask:
    """The task by the name of its file or folder, with absolute paths."""
    absolute = task.with_files(**{split: where.files for split, where in task.files.splits.items()})
    return replace(absolute, name=f"files:{given.resolve().name}")


def _build_choices(
    table: Table, files: TaskFiles, choices: tuple[str, ...], max_length: int
) -> tuple[MultipleChoiceTask, str]:
    """The task of choosing that the files pose, every row of which has been read, and what was taken for what."""
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
    for split in files.splits:
        for _ in task.rows(split):
            pass
    named = choices[0] if len(choices) == 1 else f"{choices[0]} to {choices[-1]}"
    stem = f", beginning of the choices = {columns.second}" if columns.second else ""
    id = f", id = {columns.id}" if columns.id else ""
    least, most = min(len(cells.choices) for cells in rows), max(len(cells.choices) for cells in rows)
    count = str(most) if least == most else f"{least} to {most}"
    return task, (
        f"prompt = {columns.first}{stem}, choices = {named} ({count} each), "
        f"label = {columns.label} ({_SPELLINGS[task.spelling]}){id}{_describe_format(table.form)}"
    )


def _guess_questions(paths: Mapping[str, Sequence[Path]], name: str) -> Guess:
    """Questions about contexts; if some have no answer, to say so is one."""
    splits = {
        split: Split(files=tuple(str(file.resolve()) for file in files), columns=COLUMNS)
        for split, files in paths.items()
    }
    task = QuestionAnsweringTask(
        name=name, files=TaskFiles(splits=splits), null=True, heldout=0.0 if "dev" in splits else _HELDOUT
    )
    rows = {split: list(task.rows(split)) for split in splits}
    without = sum(example.answers == () and example.impossible for example in rows["train"])
    task = replace(task, null=without > 0, rules="v2" if without else "v1")
    contexts = len({example.context for example in rows["train"]})
    sentence = f"{len(rows['train']):,} questions about {contexts:,} contexts, {without:,} of them without an answer"
    return Guess(task=task, sentence=sentence)


def _guess_tags(paths: Mapping[str, Sequence[Path]], name: str, max_length: int) -> Guess:
    """Words with tags; the types of entities are those that occur in train."""
    splits = {
        split: Split(files=tuple(str(file.resolve()) for file in files), columns=WORDS)
        for split, files in paths.items()
        if files
    }
    sentences = [sentence for path in paths["train"] for sentence in read_sentences(path)]
    types = Counter(entity.type for sentence in sentences for entity in find_entities(sentence.tags))
    if not types:
        raise data_error(f"{paths['train'][0]}: every word has the tag O. There must be at least one entity.")
    tags = ("O", *(f"{letter}-{type}" for type in in_order(types) for letter in "BI"))
    heldout = 0.0 if "dev" in splits else _HELDOUT
    task = TaggingTask(name=name, labels=tags, files=TaskFiles(splits=splits), max_length=max_length, heldout=heldout)
    for split in splits.keys() - {"train"}:
        for _ in task.rows(split):
            pass
    return Guess(task=task, sentence=f"{len(sentences):,} sentences with tags of words: {_list_classes(types)}")


def _splits(train: Sequence[Path], dev: Path | None, test: Path | None) -> dict[str, Sequence[Path]]:
    """The files of each split; a folder as ``train`` brings its own, unless they are given."""
    paths: dict[str, Sequence[Path]] = {"train": train}
    if len(train) == 1 and train[0].is_dir():
        paths = dict(find_splits(train[0]))
    given = {"dev": dev, "test": test}
    return paths | {split: [Path(path)] for split, path in given.items() if path is not None}


def _files(columns: Columns, **paths: Sequence[Path]) -> TaskFiles:
    """Splits of the files that there are; test files need no label column."""
    splits = {}
    for split, files in paths.items():
        if files:
            found = columns
            if split == "test" and columns.label not in Table(files[0]).columns:
                found = replace(found, label=None)
            if any(found.id not in Table(file).columns for file in files):
                found = replace(found, id=None)
            splits[split] = Split(files=tuple(map(str, files)), columns=found, may_lack_labels=True)
    return TaskFiles(splits=splits)


def _guess_kind(path: Path, columns: Columns, labels: Labels) -> Kind:
    """A number if all labels are, and some have a fraction or there are many; else classes, or several to a cell."""
    distinct = len(labels.counts)
    if are_numbers(labels.counts) and (not are_whole_numbers(labels.counts) or distinct > _MOST_WHOLE_NUMBERS):
        return "number"
    if find_separator(labels) is not None:
        return "labels"
    if sum(are_numbers([label]) for label in labels.counts) > max(_MOST_WHOLE_NUMBERS, 0.9 * distinct):
        return "number"  # and the few that are none are slips, which will be named
    if distinct > max(_MOST_WHOLE_NUMBERS, labels.counts.total() // 2):
        raise data_error(
            f'{path}: column "{columns.label}" has {distinct:,} different values in {labels.counts.total():,} rows. '
            "Name the label column (--label COLUMN), or say that these are its classes (--kind classes)."
        )
    return "classes"


def _build(path: Path, files: TaskFiles, asked: _Asked, max_length: int, *, pair: bool) -> TextClassificationTask:
    counts = asked.labels.counts
    if not counts:
        raise data_error(f'{path}: no row has a label in column "{files.splits["train"].columns.label}".')
    if len(counts) == 1:
        raise data_error(f'{path}: every row has the label "{next(iter(counts))}". There must be at least two.')
    shared: dict[str, Any] = {
        "name": f"files:{path.name}",
        "pair": pair,
        "max_length": max_length,
        "files": files,
        "heldout": 0.0 if "dev" in files.splits else _HELDOUT,
    }
    if asked.kind == "number":
        return TextClassificationTask(metric="pearson", also=("spearman",), numbers=_scale(asked.labels), **shared)
    if asked.kind == "labels":
        return MultiLabelTask(labels=in_order(counts), separator=asked.separator, **shared)
    return TextClassificationTask(metric="accuracy", also=("macro_f1", "matthews"), labels=in_order(counts), **shared)


def _scale(labels: Labels) -> Numbers:
    """Numbers are learnt with mean 0 and standard deviation 1, whatever they count."""
    if not are_numbers(labels.counts):
        wrong = next(label for label in labels.counts if not are_numbers([label]))
        where, line = labels.first_seen[wrong]
        raise data_error(f'{at_line(where, line)}: "{wrong}" is not a number. Fix the row, or give --kind classes.')
    values = [float(label) for label in labels.counts.elements()]
    return Numbers(origin=statistics.fmean(values), unit=statistics.pstdev(values))


def _describe(table: Table, columns: Columns, asked: _Asked) -> str:
    texts = f"text = {columns.first}" + (f", pair = {columns.second}" if columns.second else "")
    id = f", id = {columns.id}" if columns.id else ""
    return f"{texts}, label = {columns.label} ({_describe_answers(asked)}){id}{_describe_format(table.form)}"


def _describe_answers(asked: _Asked) -> str:
    counts = asked.labels.counts
    if asked.kind == "classes":
        doubt = "; if cells hold several: --kind labels" if may_hold_several(asked.labels) else ""
        return f"{len(counts)} classes: {_list_classes(counts)}{doubt}"
    if asked.kind == "labels":
        mean = counts.total() / asked.rows
        return (
            f'several of {len(counts)} labels, {mean:.1f} a text, "{asked.separator}" between: {_list_classes(counts)}'
        )
    values = [float(label) for label in counts.elements()]
    return f"a number from {min(values):g} to {max(values):g}, {statistics.fmean(values):.3g} on average"


def _list_classes(counts: Counter[str]) -> str:
    names = in_order(counts)
    shown = ", ".join(f"{name} {counts[name]:,}" for name in names[:_SHOWN])
    return f"{shown}, ..." if len(names) > _SHOWN else shown


def _describe_format(form: Format) -> str:
    """What is unusual about the file: how it is cut, and that it has no column names."""
    if form.kind != "delimited":
        return ""
    marks = {";": "; cells are separated by semicolons", "|": "; cells are separated by bars"}
    nameless = "; there is no line of column names, so they are numbered" if form.names else ""
    return marks.get(form.delimiter, "") + nameless
