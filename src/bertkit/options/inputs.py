"""Options that name something that must exist. The kind is part of their type, and is checked before any work.

    model: ModelPath

The command line checks before it imports PyTorch, so that a wrong path is reported at once.
"""

from __future__ import annotations

import stat
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BufferedIOBase
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from bertkit.errors import data_error, usage_error
from bertkit.options.job import AnyPath
from bertkit.ranges import find_note
from bertkit.storage.locations import (
    require_any,
    require_data,
    require_files,
    require_model,
    require_run,
    require_tables,
    require_texts,
    require_tokenizer,
)
from bertkit.storage.remote import RemotePath, is_url, to_path
from bertkit.storage.suffixes import COMPRESSIONS, TABLES

STREAM = Path("-")
"""stdin or stdout in place of a file."""


def read_stdin() -> Iterator[bytes]:
    """What has arrived on stdin, as soon as it arrives; as bytes, because its text depends on the locale, where half a
    letter becomes another text."""
    if sys.stdin is None:  # as Python leaves a stream that was closed before it began
        raise usage_error("the input is -, and standard input is closed. Name a file.")
    assert isinstance(sys.stdin.buffer, BufferedIOBase)
    try:
        while block := sys.stdin.buffer.read1():
            yield block
    except OSError as error:
        raise data_error(f"stdin cannot be read: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class Input:
    """A note in the type of an option: what is at the path that it names; ``upload`` is an output."""

    kind: Literal["file", "table", "stream", "texts", "model", "run", "tokenizer", "data", "any", "task", "upload"]


InputFile = Annotated[AnyPath, Input("file")]
"""A file."""

TextsPath = Annotated[AnyPath, Input("texts")]
"""A file of text, or a folder of them."""

ModelPath = Annotated[AnyPath, Input("model")]
"""A run folder, the folder of a model, or the name of a model of the hub that has been downloaded."""

RunPath = Annotated[AnyPath, Input("run")]
"""A run folder."""

TokenizerPath = Annotated[AnyPath, Input("tokenizer")]
"""A folder with a tokenizer, such as that of a model, or a vocab.txt."""

DataFolder = Annotated[AnyPath, Input("data")]
"""A folder that ``bertkit prepare`` has written."""

UploadPath = Annotated[AnyPath, Input("upload")]
"""An output folder, or the URL to which it is uploaded."""

InputPath = Annotated[AnyPath, Input("any")]
"""A file or a folder."""


@runtime_checkable
class DataTable(Protocol):
    """A table in memory: a pandas DataFrame, or a Dataset or DatasetDict of Hugging Face ``datasets``."""

    @property
    def shape(self) -> Any:
        """Rows and columns; of a DatasetDict those of each split."""


@runtime_checkable
class LoadedModel(Protocol):
    """What ``bertkit.load`` returns."""

    @property
    def folder(self) -> Path:
        """That of the model."""


TableFile = Annotated[AnyPath | DataTable, Input("table")]
"""A table in a file or in memory."""

TableStream = Annotated[AnyPath | DataTable, Input("stream")]
"""A table in a file or in memory, or ``-`` for the lines of stdin."""

TablePath = Annotated[AnyPath | DataTable, Input("any")]
"""A table in a file or in memory, or a folder of tables."""


def looks_like_table(name: str) -> bool:
    """Whether the name of a task ends as that of a file does; ``my_lab.bio`` may be a module."""
    return Path(name).suffix.lower() in {*TABLES, *COMPRESSIONS} - {".bio", ".iob"}


def check_inputs(options: Any) -> None:
    """Raise an error for the first option whose path does not exist, or is a URL where a local path is needed.

    ``options`` is a record of options.
    """
    kind_of_record: Any = type(options)
    inputs = kinds_of_inputs(kind_of_record)
    for name, kind in inputs.items():
        value = getattr(options, name)
        values = value if isinstance(value, list | tuple) else [value]
        paths = [_to_path(each, kind) for each in values if isinstance(each, str | Path)]
        _CHECKS[kind](paths)
    output = getattr(options, "output", None)
    if output is not None and "output" not in inputs and is_url(output):
        raise usage_error(f"{output} is a URL, and this command writes to this machine. Upload the result afterwards.")


def _to_path(given: str | Path, kind: str) -> Path:
    """The path, or a usage error for what this kind of input cannot be: a URL, a pipe, a socket, a device."""
    path = to_path(given) if kind in _MAY_BE_URLS else Path(given)
    if kind not in _MAY_BE_URLS and is_url(given):
        raise usage_error(f"{given} is a URL, and a path on this machine is needed. Download what is there first.")
    if kind != "upload":
        _refuse_streams(path)
    return path


def _refuse_streams(path: Path) -> None:
    """Raise a usage error for a pipe, a socket or a device: inputs are read more than once, and a pipe waits."""
    if isinstance(path, RemotePath):
        return
    try:
        mode = path.stat().st_mode
    except OSError:  # reported by the check of its kind
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise usage_error(f"{path} is a pipe, a socket or a device, and no file: save its content to a file.")


def _check_task(paths: Sequence[Path]) -> None:
    """A name with the suffix of a table is a file; any other one is that of a task."""
    require_files([path for path in paths if looks_like_table(str(path)) and not path.is_dir()])


def _each(check: Callable[[Path], None]) -> Callable[[Sequence[Path]], None]:
    def check_all(paths: Sequence[Path]) -> None:
        for path in paths:
            check(path)

    return check_all


def _check_streams(paths: Sequence[Path]) -> None:
    """Tables, or ``-``. A path with spaces was probably meant as a text."""
    for path in paths:
        if " " in path.name and not looks_like_table(path.name) and not path.exists():
            raise usage_error(f'no file at "{path}". A text itself is read from stdin, with - in place of the file.')
    require_tables([path for path in paths if path != STREAM])


_MAY_BE_URLS = ("texts", "upload")

_CHECKS: Mapping[str, Callable[[Sequence[Path]], None]] = {
    "file": require_files,
    "table": require_tables,
    "stream": _check_streams,
    "texts": require_texts,
    "model": _each(require_model),
    "run": _each(require_run),
    "tokenizer": _each(require_tokenizer),
    "data": _each(require_data),
    "any": _each(require_any),
    "task": _check_task,
    "upload": lambda paths: None,
}


@cache
def kinds_of_inputs(record: type[Any]) -> dict[str, str]:
    """The options of a record that name an input, with their kinds."""
    hints = typing.get_type_hints(record, include_extras=True)
    return {name: note.kind for name, hint in hints.items() if (note := find_note(hint, Input))}
