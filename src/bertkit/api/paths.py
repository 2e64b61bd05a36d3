"""The files that a caller names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from bertkit.formats.text_files import TextFiles, find_text_files
from bertkit.options.inputs import DataTable
from bertkit.options.job import AnyPath
from bertkit.storage.remote import to_path


def text_files(files: Iterable[AnyPath]) -> TextFiles:
    """The text files that are named or in named folders; an error for a folder without any."""
    return find_text_files([to_path(file) for file in files])


def optional_path(path: AnyPath | os.PathLike[str] | DataTable | None) -> Path | None:
    """The path, if one is given."""
    return None if path is None else given_path(path)


def given_path(path: AnyPath | os.PathLike[str] | DataTable) -> Path:
    """The path of an option that may be a table in memory, which is in a file by the time that a verb runs."""
    assert isinstance(path, str | os.PathLike)
    return Path(path)
