"""Which columns of new input are the texts and the id: named by the user, those of the training, or guessed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bertkit.errors import did_you_mean, list_names, usage_error
from bertkit.formats.encodings import UTF_8, check_encoding
from bertkit.formats.tables import Table
from bertkit.task_files.columns import ID_NAMES, find_id, guess_columns, guess_texts, looks_like_name
from bertkit.task_files.files import Columns, Split
from bertkit.task_files.indicators import split_names
from bertkit.task_types.base import FileTask
from bertkit.task_types.choice_reader import ChoiceReader
from bertkit.task_types.text_reader import TextReader
from bertkit.task_types.text_task import TextTask
from bertkit.user_tables.files import describe_columns


def choose_columns(
    task: FileTask,
    path: Path,
    *,
    text: str | None = None,
    pair: str | None = None,
    id: str | None = None,
    label: str | None = None,
    labelled: bool = False,
) -> tuple[FileTask, str]:
    """``task`` with the columns in which ``path`` has its texts and ids, and a sentence about those that were guessed.

    ``text``, ``pair``, ``id`` and ``label`` are names of columns and replace what is known or guessed; ``label`` may be
    several with commas between. A task that was made from the ``config.json`` of another library, and so has no files,
    becomes one on pairs if there is a second text; ``labelled`` says that there is a label, too. A column that does not
    exist, or a second text that is missing or not of use, is a usage error.
    """
    named = {"--text": text, "--pair": pair, "--id": id, "--label": label}
    given = [option for option, name in named.items() if name is not None]
    reader = task.reader
    is_on_texts = isinstance(reader, TextReader)
    if is_on_texts and not given and path.is_dir():
        return task, ""
    opened = reader.open_table(path) if is_on_texts else None
    if not isinstance(reader, TextReader) or opened is None:
        if given:
            reason = f"{path} has no columns" if is_on_texts else f"{task.name} finds its columns itself"
            raise usage_error(f"{reason}: leave out {list_names(given)}.")
        return task, ""
    table, known = opened
    labels = split_names(label, table.columns)
    table.require(*filter(None, (text, pair, id, *labels)))
    if len(labels) > 1 and (missing := set(task.labels).difference(name.strip() for name in labels)):
        raise usage_error(f"--label names no column for {list_names(sorted(missing))}: give the columns of all labels.")
    if task.files.splits:
        if labelled and not labels:
            _require_labels(task, table)
        if not given and all(name in table for name in known.used()):
            return _with_ids(task, table, known)
        if pair is not None and not reader.pair:
            raise usage_error(f"{task.name} is a task on one text: leave out --pair.")
        columns = _of_known_task(task, table, known, text, pair, labels)
    elif labelled:
        columns = guess_columns(table, text=text, pair=pair, label=label)
    else:
        columns = guess_texts(table, text=text, pair=pair)
    if reader.pair and columns.second is None:
        raise usage_error(f"{task.name} needs two texts, and {path} has one: name the second with --pair COLUMN.")
    columns = columns if id is None else replace(columns, id=id)
    guessed = f"{path.name}: {describe_columns(columns, ','.join(columns.answers))}" if text is None else ""
    return _with_columns(task, columns, labels), guessed


def with_encoding(task: FileTask, encoding: str | None) -> FileTask:
    """``task`` with tables in ``encoding``, UTF-8 if it is None; a usage error if it reads no tables of texts."""
    if encoding is not None and not reads_tables(task):
        raise usage_error(f"--encoding is for tables of texts; {task.name} reads other files. Convert them to UTF-8.")
    name = UTF_8 if encoding is None else check_encoding(encoding)
    return task if task.files.encoding == name else replace(task, files=replace(task.files, encoding=name))


def reads_tables(task: FileTask) -> bool:
    """Whether the files of a task are tables whose columns have names, and nothing else."""
    return isinstance(task.reader, TextReader | ChoiceReader)


def with_utf8(task: FileTask) -> FileTask:
    """``task`` with tables in UTF-8, whatever its training files were, for a command without ``--encoding``."""
    return replace(task, files=replace(task.files, encoding=None))


def _require_labels(task: FileTask, table: Table) -> None:
    """Raise a usage error if the table has the columns of labels of no split of the task."""
    known = [split.columns.answers for split in task.files.splits.values() if split.columns.answers]
    if known and not any(all(name in table for name in names) for names in known):
        missing = next(name for name in known[0] if name not in table)
        raise usage_error(
            f'{table.path} has no column "{missing}". Its columns: {list_names(table.columns)}. Name that of the '
            "label with --label COLUMN, or call it that."
        )


def _with_ids(task: FileTask, table: Table, known: Columns) -> tuple[FileTask, str]:
    """The task, whose texts the table has, with the ids of the table, and a sentence if their column was guessed."""
    columns = replace(known, id=_find_ids(table, known))
    if columns == known:
        return task, ""
    return _with_columns(task, columns, ()), f"{table.path.name}: id = {columns.id}"


def _find_ids(table: Table, columns: Columns) -> str | None:
    """The column of the ids of the training, or one that is named as ids are and is no text."""
    others = (name for name in table.columns if name not in (columns.first, columns.second))
    return columns.id if columns.id in table else find_id(others)


def _of_known_task(
    task: FileTask, table: Table, known: Columns, text: str | None, pair: str | None, labels: tuple[str, ...]
) -> Columns:
    """The columns of the training where the table has them; a text of another name if there is no other column."""
    second = pair or known.second
    if second is not None and second not in table:
        raise usage_error(
            f'{table.path} has no column "{second}". Its columns: {list_names(table.columns)}. Name that of the second '
            "text: --pair COLUMN."
        )
    taken = {second, *labels, *_answers(task)}
    others = [name for name in table.columns if name.casefold() not in ID_NAMES and name not in taken]
    if text is None and known.first not in table and len(others) == 1 and looks_like_name(others[0]):
        text = others[0]
    first = text or known.first
    if first not in table:
        columns = list_names(table.columns)
        raise usage_error(
            f'{table.path} has no column "{first}". Its columns: {columns}.'
            f"{did_you_mean(first, table.columns) or _propose_text(table, second)}"
        )
    found = replace(known, first=first, second=second)
    return replace(found, id=_find_ids(table, found))


def _propose_text(table: Table, second: str | None) -> str:
    """What to type for the column that looks most like a text."""
    name = guess_texts(table, text=None, pair=second).first
    return f" Name it with --text {name}." if looks_like_name(name) else " Name it: --text COLUMN."


def _answers(task: FileTask) -> set[str]:
    return {name for split in task.files.splits.values() for name in split.columns.answers}


def _with_columns(task: FileTask, columns: Columns, labels: tuple[str, ...]) -> FileTask:
    """``task`` on these columns of texts, with its own columns of labels unless there are ``labels``."""
    splits = {
        name: replace(split, columns=columns.with_labels(*(labels or split.columns.answers)))
        for name, split in task.files.splits.items()
    } or {"train": Split(files=(), columns=columns, may_lack_labels=True)}
    files = replace(task.files, splits=splits)
    if isinstance(task, TextTask):
        return replace(task, pair=columns.second is not None, files=files)
    return replace(task, files=files)
