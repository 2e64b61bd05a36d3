"""The files that a caller names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bertkit.errors import did_you_mean, usage_error

AnyPath = str | Path


def existing(files: Iterable[AnyPath]) -> list[Path]:
    """The paths of files that are there; none at all, or one that is not there, is an error."""
    paths = [Path(file) for file in files]
    if not paths:
        raise usage_error("name at least one text file.")
    for path in paths:
        if path.is_dir():
            raise usage_error(f"{path} is a folder; name its files, such as {path}/*.txt.")
        if not path.is_file():
            raise usage_error(f"no file at {path}.{near(path)}")
    return paths


def near(path: Path) -> str:
    """The nearest name beside a path that does not exist, as a question; empty if there is none."""
    return did_you_mean(str(path), map(str, path.parent.glob("*"))).replace('"', "")
