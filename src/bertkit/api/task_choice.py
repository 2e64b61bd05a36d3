"""The task that a user means: a named one, one from Python, or one that is guessed from the user's own table."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bertkit import lookup
from bertkit.api.paths import given_path, optional_path
from bertkit.errors import usage_error
from bertkit.formats.encodings import UTF_8, check_encoding
from bertkit.formats.splits import holds_tables
from bertkit.options.finetuning import TaskTrainingOptions, TaskValue
from bertkit.options.inputs import DataTable, looks_like_table
from bertkit.options.job import AnyPath
from bertkit.report.progress import Progress
from bertkit.storage.locations import is_table_folder, require_files, suggest_path
from bertkit.task_types import FileTask
from bertkit.task_types.class_weights import Weightable
from bertkit.task_types.similarity import as_similarity
from bertkit.user_tables.guess import guess
from bertkit.user_tables.input_columns import with_encoding

_FILES = ("data", "train", "dev", "test")
_COLUMNS = ("text", "pair", "label", "kind", "allow_rare_labels", "fold_labels")
"""Options about the columns of a user's own table and its labels; a known task has its own."""


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task that bertkit knows by name: its score, the files it expects, and what it is about."""

    name: str
    metric: str
    files: str
    about: str


def list_tasks() -> list[TaskEntry]:
    """The tasks that bertkit knows by name: ``name``, ``metric``, ``files`` and ``about``."""
    entries = []
    for name, task in _named_tasks().items():
        files = {file for split in task.files.splits.values() for file in split.files}
        entries.append(TaskEntry(name, task.metric, ", ".join(sorted(files)), task.about))
    return entries


def choose_task(options: TaskTrainingOptions, bar: Progress) -> FileTask:
    """The task of ``finetune`` or ``tune`` with its files; shows what was guessed."""
    if isinstance(options.task, FileTask):
        task = options.task
    elif _is_table(options.task):
        task = _guess_task(Path(str(options.task)), options, bar)
    else:
        task = _name_files(find_task(str(options.task)), options)
        if options.kind == "similarity":
            task = as_similarity(task)
    if options.encoding is not None:
        task = with_encoding(task, options.encoding)
    if options.class_weights is not None:
        if not isinstance(task, Weightable):
            raise usage_error(f"{task.name} does not classify texts, so its classes cannot have weights.")
        task = task.weighted(options.class_weights, limit=options.limit)
    return task


def refuse_unused(options: TaskTrainingOptions, *, then: object = None) -> None:
    """Raise a usage error for options that the task does not read; ``then`` is a further task, which reads ``data``."""
    names = [name for name in (*_FILES, *_COLUMNS) if getattr(options, name)]
    if isinstance(options.task, FileTask):
        unused, reason = names, f"{options.task.name} has its files and columns"
    elif _is_table(options.task):
        unused = [name for name in names if name == "data" and then is None]
        reason = f"{options.task} is a table, and --data the folder of a task that bertkit knows by name"
    else:
        unused = [name for name in names if name in _COLUMNS and not (name == "kind" and options.kind == "similarity")]
        reason = f"{options.task} has its own columns"
    if unused:
        raise usage_error(f"{reason}: leave out {', '.join(f'--{name}'.replace('_', '-') for name in unused)}.")


def find_task(name: str) -> FileTask:
    """The task that bertkit knows by this name, or ``package.module:name`` of a module of the user.

    Raises
    ------
    BertkitError
        If there is none; it names the most similar one.
    """
    module = name.partition(":")[0].partition(".")[0]
    if Path(name).is_dir() and name not in _named_tasks():
        raise usage_error(
            f"{name} is a folder without a train file, such as {name}/train.csv, and without folders of .txt files, "
            "one for each label."
        )
    if "." in name and not (module and importlib.util.find_spec(module)):  # a path may begin with a dot
        no_module = f", and no module named {module}" if module else ""
        raise usage_error(f"no file at {name}{no_module}.{suggest_path(Path(name))}")
    task: FileTask = lookup.find("tasks", name, FileTask)
    return task


def _named_tasks() -> Mapping[str, FileTask]:
    return lookup.values("tasks", FileTask)


def _is_table(task: AnyPath | TaskValue | DataTable) -> bool:
    """Whether this is a file, looks like the name of one, or is a folder of tables and not a task's name.

    A usage error for what is neither a path nor a name, such as a list of rows.
    """
    if isinstance(task, os.PathLike):
        return True
    if not isinstance(task, str):
        raise usage_error(
            f"task is a {type(task).__name__}; it must be a path, the name of a task, a pandas DataFrame or a Dataset."
        )
    path = Path(task)
    if path.is_dir():
        return holds_tables(path) and task not in _named_tasks()
    return path.is_file() or looks_like_table(task)


def _guess_task(table: Path, options: TaskTrainingOptions, bar: Progress) -> FileTask:
    """The task of a user's own table, whose columns are guessed unless they are given."""
    files = [table, *map(given_path, options.train)]
    if not table.is_dir():
        require_files(files)
    elif options.train and not is_table_folder(table):
        raise usage_error(f"{table} is a folder with a train file of its own: leave out --train, or name files alone.")
    guessed = guess(
        files,
        dev=optional_path(options.dev),
        test=optional_path(options.test),
        text=options.text,
        pair=options.pair,
        label=options.label,
        kind=options.kind,
        allow_rare_labels=options.allow_rare_labels,
        fold_labels=options.fold_labels,
        encoding=UTF_8 if options.encoding is None else check_encoding(options.encoding),
    )
    bar.say(guessed.sentence)
    return guessed.task


def _name_files(task: FileTask, options: TaskTrainingOptions) -> FileTask:
    """A named task with its files where the user says they are."""
    if options.data is not None:
        task = task.at(Path(options.data))
    given = {
        "train": options.train,
        "dev": () if options.dev is None else [options.dev],
        "test": () if options.test is None else [options.test],
    }
    paths = {split: list(map(given_path, files)) for split, files in given.items() if files}
    return task.with_files(**paths) if paths else task
