"""Files and folders that are whole or absent: temporary name, flush to disk, rename, flush the folder.

A crash between any two instructions leaves the old content or the new, never a torso. Hashes are SHA-256,
because neither safetensors nor JSON notices a flipped bit.

A folder cannot replace another in one step. Between two renames the old one stands aside as ``.old-NAME``:
``standing`` finds it there, ``remove_temporaries`` puts it back.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from bertkit.errors import BertkitError, data_error, usage_error

TEMPORARY_PREFIX = ".tmp-"
SET_ASIDE_PREFIX = ".old-"


def flush_to_disk(path: Path) -> None:
    """``fsync`` a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each of them durable; one that is there already is left as it is."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        flush_to_disk(path.parent)


@contextmanager
def explain_output(folder: Path) -> Iterator[None]:
    """Turn what keeps a user's -o ``folder`` from being made into one line that names it."""
    try:
        yield
    except OSError as error:
        raise usage_error(f"cannot write to {folder}: {error.strerror}. Choose another -o folder.") from error


def require_space(folder: Path, needed: int) -> None:
    """Raise if the disk of ``folder`` has less than ``needed`` bytes free: before the work, not after hours of it."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BertkitError(
            f"{folder} has {free / 1e9:,.2f} GB free, and what is to be kept there needs {needed / 1e9:,.2f} GB. "
            "Free some, or choose a folder on another disk."
        )


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary sibling of ``path``, make it durable, and give it its name."""
    with explain_writing(path), _temporary_sibling(path) as temporary:
        write(temporary)
        flush_to_disk(temporary)
        temporary.replace(path)
        flush_to_disk(path.parent)


def write_folder(path: Path, fill: Callable[[Path], object]) -> None:
    """The same for a folder, in the place of the one that may be there."""
    with explain_writing(path), _temporary_sibling(path) as temporary:
        temporary.mkdir()
        fill(temporary)
        for each in sorted(temporary.rglob("*")):
            flush_to_disk(each)
        flush_to_disk(temporary)
        aside = _aside(path)
        if path.is_dir():
            _delete(aside)
            path.rename(aside)
        temporary.rename(path)
        flush_to_disk(path.parent)
        _delete(aside)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """Read a JSON file; a missing or broken one is an error that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise data_error(f"{path} is missing.") from error
    except (OSError, ValueError, RecursionError) as error:  # bad UTF-8 and bad JSON are both ValueErrors
        raise data_error(f"{path} is not readable JSON: {error}.") from error


def standing(path: Path) -> Path:
    """Where the folder ``path`` is: there, or aside when a crash has cut off its replacement."""
    return _aside(path) if not os.path.lexists(path) and _aside(path).is_dir() else path


def remove_folder(path: Path) -> None:
    """Delete a folder; a crash in the middle leaves no part of it under its name."""
    with explain_writing(path), _temporary_sibling(path) as temporary:
        path.rename(temporary)


def remove_temporaries(folder: Path) -> None:
    """Delete what interrupted writers left behind in ``folder``, and put back what stands aside.

    Only the one who writes there may call this.
    """
    for path in folder.glob(f"{SET_ASIDE_PREFIX}*"):
        name = path.with_name(path.name.removeprefix(SET_ASIDE_PREFIX))
        _delete(path) if os.path.lexists(name) else path.rename(name)
    for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
        _delete(path)


@contextmanager
def explain_writing(path: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into one line that names ``path``."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BertkitError(f"cannot write {path}: {reason}. What was there before is intact.") from error


@contextmanager
def _temporary_sibling(path: Path) -> Iterator[Path]:
    """A name beside ``path``; what still stands there at the end is deleted."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    try:
        yield temporary
    finally:
        with suppress(OSError):
            _delete(temporary)


def _aside(path: Path) -> Path:
    return path.with_name(f"{SET_ASIDE_PREFIX}{path.name}")


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
