"""Files that are whole or absent: temporary name, flush to disk, rename, flush the folder.

A crash between any two instructions leaves the old file or the new one under the final name, never a
torso. Hashes are SHA-256, because neither safetensors nor JSON notices a flipped bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, data_error

TEMPORARY_PREFIX = ".tmp-"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_to_disk(path: Path) -> None:
    """``fsync`` a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary sibling of ``path``, make it durable, and give it its name."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    try:
        write(temporary)
        flush_to_disk(temporary)
        temporary.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BertkitError(f"cannot write {path}: {error.strerror or error}. Earlier files are intact.") from error


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
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise data_error(f"{path} is not readable JSON: {error}.") from error


def publish_folder(temporary: Path, final: Path) -> None:
    """Give a filled temporary folder its final name. Its files are flushed first; ``final`` must not exist."""
    for path in sorted(temporary.rglob("*")):
        flush_to_disk(path)
    flush_to_disk(temporary)
    temporary.rename(final)
    flush_to_disk(final.parent)


def remove_temporaries(folder: Path) -> None:
    """Delete what interrupted writers left behind in ``folder``."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
