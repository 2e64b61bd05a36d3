"""The files that a caller names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from bertkit.errors import usage_error
from bertkit.formats.text_files import TextFiles, find_text_files
from bertkit.options.inputs import DataTable
from bertkit.options.job import AnyPath
from bertkit.storage.locations import require_files, require_texts
from bertkit.storage.remote import to_path


def existing(files: Iterable[AnyPath]) -> list[Path]:
    """The paths of files that exist.

    Raises
    ------
    BertkitError
        If no file is given, or if one does not exist or is a folder.
    """
    paths = [Path(file) for file in files]
    if not paths:
        raise usage_error("name at least one text file.")
    require_files(paths)
    return paths


def existing_texts(files: Iterable[AnyPath]) -> TextFiles:
    """The text files that are named or in named folders.

    Raises
    ------
    BertkitError
        If none is given, if one does not exist, or if a folder has no text file.
    """
    paths = [to_path(file) for file in files]
    if not paths:
        raise usage_error("name at least one text file.")
    require_texts(paths)
    return find_text_files(paths)


def optional_path(path: AnyPath | os.PathLike[str] | DataTable | None) -> Path | None:
    """The path, if one is given."""
    return None if path is None else given_path(path)


def given_path(path: AnyPath | os.PathLike[str] | DataTable) -> Path:
    """The path of an option that may be a table in memory, which is in a file by the time that a verb runs."""
    assert isinstance(path, str | os.PathLike)
    return Path(path)
