"""Files and folders that are complete or absent: temporary name, flush to disk, rename, flush the folder.

A crash between any two instructions leaves the old content or the new, never a part of it.

A folder cannot replace another in one step. Between two renames the old one has the name ``.bertkit-old-NAME``:
``recoverable_path`` finds it there, ``remove_temporaries`` renames it back.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.storage.json_text import parse_json

TEMPORARY_PREFIX = ".bertkit-tmp-"
BACKUP_PREFIX = ".bertkit-old-"
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of a surrogate in JSON; a pair of them is one character."""

_TEMPORARY_NAME = re.compile(re.escape(TEMPORARY_PREFIX) + r"\d+-.+", re.DOTALL)


def flush_to_disk(path: Path) -> None:
    """``fsync`` a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and flush each to disk; a folder that exists is left as it is."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        flush_to_disk(path.parent)


@contextmanager
def explain_output(folder: Path) -> Iterator[None]:
    """Turn an OSError while a user's -o ``folder`` is made into a usage error that names it."""
    try:
        yield
    except OSError as error:
        place = error.filename or folder
        raise usage_error(f"cannot write to {place}: {error.strerror}. Choose another -o folder.") from error


def require_space(folder: Path, needed: int) -> None:
    """Raise if the disk of ``folder`` has less than ``needed`` bytes free, before hours of work are lost."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BertkitError(
            f"{folder} has {free / 1e9:,.2f} GB free, and the output needs {needed / 1e9:,.2f} GB. "
            "Free some space, or choose a folder on another disk."
        )


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, flush it to disk, and rename it to ``path``."""
    with explain_writing(path), _temporary_sibling(path) as temporary:
        write(temporary)
        flush_to_disk(temporary)
        temporary.replace(path)
        flush_to_disk(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, completely or not at all."""
    write_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))


def write_folder(path: Path, fill: Callable[[Path], object]) -> None:
    """Let ``fill`` fill a temporary folder beside ``path``, flush it to disk, and rename it to ``path``."""
    with explain_writing(path), _temporary_sibling(path) as temporary:
        temporary.mkdir()
        fill(temporary)
        for each in sorted(temporary.rglob("*")):
            flush_to_disk(each)
        flush_to_disk(temporary)
        backup = _backup_path(path)
        if path.is_dir():
            _delete(backup)
            path.rename(backup)
        temporary.rename(path)
        flush_to_disk(path.parent)
        _delete(backup)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file completely or not at all. NaN, which is not JSON, is a mistake of the caller."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file; a missing or broken one is an error that names it.

    So is one with half a character, which JSON can spell and neither a file nor the libraries can hold.
    """
    try:
        text = path.read_text(encoding="utf-8")
        value = parse_json(text)
        if _HALF_CHARACTER.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except FileNotFoundError as error:
        raise data_error(f"{path} is missing.") from error
    except (OSError, ValueError) as error:  # bad UTF-8 and bad JSON are ValueErrors
        raise data_error(f"{path} is not readable JSON: {error}.") from error


def read_object(path: Path, *, missing_ok: bool = False) -> dict[str, Any]:
    """Read a JSON file that has an object; anything else is an error that names the file.

    With ``missing_ok`` a file that does not exist counts as an empty object.
    """
    if missing_ok and not path.is_file():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise data_error(f"{path} is not a JSON object.")
    return content


def recoverable_path(path: Path) -> Path:
    """Where the folder ``path`` is: at its name, or at that of its backup if a crash interrupted its replacement."""
    return _backup_path(path) if not os.path.lexists(path) and _backup_path(path).is_dir() else path


def restore_folder(path: Path) -> None:
    """Rename the backup of the folder ``path`` to its name if a crash interrupted its replacement."""
    if recoverable_path(path) != path:
        _backup_path(path).rename(path)


def remove_folder(path: Path) -> None:
    """Delete a folder; a crash during the deletion leaves no part of it under its name."""
    with explain_writing(path), _temporary_sibling(path) as temporary:
        path.rename(temporary)


def remove_temporaries(folder: Path) -> None:
    """Delete the temporary files of interrupted writers in ``folder``, and rename backups to their names.

    Only the process that writes there may call this. Files whose names bertkit does not give are left alone, and so is
    everything behind a symbolic link.
    """
    if folder.is_symlink():
        return
    for path in folder.glob(f"{BACKUP_PREFIX}*"):
        name = path.with_name(path.name.removeprefix(BACKUP_PREFIX))
        _delete(path) if os.path.lexists(name) else path.rename(name)
    for path in folder.iterdir() if folder.is_dir() else ():
        if _TEMPORARY_NAME.fullmatch(path.name):
            _delete(path)


@contextmanager
def explain_writing(path: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission and other I/O errors into one line that names ``path``."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        intact = " The previous content is intact." if os.path.lexists(path) else ""  # path.exists may raise
        raise BertkitError(f"cannot write {path}: {reason}.{intact}") from error


@contextmanager
def _temporary_sibling(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``; a file or folder that has it at the end is deleted."""
    # The number of the process is not enough: two threads have one, and so may two containers.
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
    finally:
        with suppress(OSError):
            _delete(temporary)


def _backup_path(path: Path) -> Path:
    return path.with_name(f"{BACKUP_PREFIX}{path.name}")


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
