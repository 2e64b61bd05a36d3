"""A JSON record that vouches for the files beside it and for itself.

``files`` holds the size and the SHA-256 of each file, ``sha256`` that of the record's own text without that
line. So a bit that flips anywhere, in the record too, is found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json, sha256_of


def write_seal(path: Path, record: Mapping[str, Any]) -> None:
    """Write ``record`` to ``path``, vouching for every file that its folder has by now."""
    assert not {"files", "sha256"} & set(record), "these keys are the seal's own"
    files = {each.name: _describe(each) for each in sorted(path.parent.iterdir())}
    path.write_text(_encode({**record, "files": files}), encoding="utf-8")


def read_seal(path: Path) -> dict[str, Any]:
    """The record at ``path`` without its own hash; the files are looked at by ``check_files``."""
    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("files"), dict):
        raise data_error(f"{path} is damaged: it names no files.")
    record.pop("sha256", None)
    if path.read_text(encoding="utf-8") != _encode(record):
        raise data_error(f"{path} is damaged: its text does not agree with its own SHA-256.")
    return record


def check_files(path: Path, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Read the seal at ``path`` and hold the files beside it to it: all that it lists, or those of ``names``.

    Names in the seal are compared with what the folder has, and are never followed as paths.
    """
    record = read_seal(path)
    there = {file.name: file for file in path.parent.iterdir()}
    for name in sorted(record["files"] if names is None else set(names) & set(record["files"])):
        if name not in there or not there[name].is_file():
            raise data_error(f"{path.parent} is damaged: {name} is missing.")
        _check_file(there[name], record["files"][name], path.name)
    return record


def _check_file(file: Path, wanted: Any, seal: str) -> None:
    size, written = file.stat().st_size, wanted.get("bytes") if isinstance(wanted, dict) else None
    if size != written:
        raise data_error(f"{file} is damaged: it has {size} bytes, and {written} were written.")
    try:
        found = _describe(file)
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror or error}.") from error
    if found != wanted:
        raise data_error(f"{file} is damaged: its SHA-256 is not the one in {seal}.")


def _describe(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": sha256_of(file)}


def _encode(record: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(record, ensure_ascii=False).encode()).hexdigest()
    return json.dumps({**record, "sha256": digest}, indent=2, ensure_ascii=False) + "\n"
