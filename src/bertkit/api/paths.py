"""The files that a caller names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bertkit.errors import did_you_mean, usage_error
from bertkit.options.job import AnyPath


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
    for path in paths:
        if path.is_dir():
            raise usage_error(f"{path} is a folder; name its files, such as {path}/*.txt.")
        if not path.is_file():
            raise usage_error(f"no file at {path}.{suggest_path(path)}")
    return paths


def optional_path(path: AnyPath | None) -> Path | None:
    """The path, if one is given."""
    return None if path is None else Path(path)


def suggest_path(path: Path) -> str:
    """ " Did you mean PATH?" with the most similar name in the same folder; empty if there is none."""
    return did_you_mean(str(path), map(str, path.parent.glob("*"))).replace('"', "")
