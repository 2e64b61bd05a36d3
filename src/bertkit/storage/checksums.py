"""Hashes of files, and JSON records that carry checksums: their own SHA-256, and those of the files beside them.

``sha256`` is the hash of the record's own text without that line; ``files`` has the size and the hash of each file. So
a bit that flips anywhere, also in the record itself, is detected.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json, read_object, write_text

_SHA256 = re.compile("[0-9a-f]{64}")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal; of a folder, that of the output of ``sha256sum`` over its files."""
    if path.is_dir():
        lines = [f"{sha256_of(file)}  {file.relative_to(path).as_posix()}\n" for file in _files_below(path)]
        return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in (_files_below(path) if path.is_dir() else [path]))


def _files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def fingerprint_of(paths: Iterable[Path], *facts: str) -> str:
    """A hash of the content of files, and of the files in folders but not below these, and of further ``facts``.

    Hidden files of a folder do not count: a command may be writing its answers to one.
    """
    files = [file for path in paths for file in (sorted(path.glob("[!.]*")) if path.is_dir() else [path])]
    hashes = [sha256_of(file) for file in files if file.is_file()]
    return hashlib.sha256("\n".join([*hashes, *facts]).encode()).hexdigest()[:16]


def encode_checked(record: Mapping[str, object]) -> str:
    """The record as JSON text with its own SHA-256 in the last line. NaN, which is not JSON, is a ValueError."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return json.dumps({**record, "sha256": digest}, indent=2, ensure_ascii=False) + "\n"


def read_checked(path: Path, advice: str = "") -> dict[str, Any]:
    """The record that ``encode_checked`` wrote, without the hash; ``advice`` ends the error about a damaged one."""
    record = read_json(path)
    if isinstance(record, dict):
        record.pop("sha256", None)
        with suppress(ValueError):  # a damaged number such as 1e999 is read as infinity
            if path.read_bytes() == encode_checked(record).encode(errors="surrogatepass"):
                return record
    raise data_error(f"{path} is damaged: its text does not agree with its own SHA-256. {advice}")


def write_checked(path: Path, record: Mapping[str, object]) -> None:
    """Write a record with its own SHA-256, completely or not at all."""
    write_text(path, encode_checked(record))


def read_record(path: Path) -> dict[str, Any]:
    """The record that ``write_checked`` wrote; one without a hash, as earlier versions wrote it, is not checked.

    A record whose last value is a hash under another name is one whose name was damaged.
    """
    record = read_object(path)
    if "sha256" in record or (record and _SHA256.fullmatch(str(list(record.values())[-1]))):
        return read_checked(path, 'If you have edited it, delete its line "sha256".')
    return record


def require_format(path: Path, record: Mapping[str, object], version: int, advice: str) -> None:
    """Raise if the record at ``path`` has another format; one without a number is of format 1."""
    found = record.get("format", 1)
    if found != version:
        raise data_error(f"{path} has format {found}; this version of bertkit reads format {version}. {advice}")


def write_checksums(path: Path, record: Mapping[str, object]) -> None:
    """Write ``record`` to ``path`` with the checksums of every file that is in its folder by now, folders left out."""
    assert not {"files", "sha256"} & set(record), "these keys are reserved for the checksums"
    files = {each.name: _describe(each) for each in sorted(path.parent.iterdir()) if each.is_file()}
    path.write_text(encode_checked({**record, "files": files}), encoding="utf-8")


def read_checksums(path: Path, *, version: int, advice: str) -> dict[str, Any]:
    """The record at ``path``, after a check of its own hash and its format; ``check_files`` checks the files."""
    record = read_checked(path)
    if not isinstance(record.get("files"), dict):
        raise data_error(f"{path} is damaged: it names no files.")
    require_format(path, record, version, advice)
    return record


def check_files(path: Path, record: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
    """Compare the files beside ``path`` with the checksums in its ``record``: all that it lists, or those of ``names``.

    Names in the record are compared with what the folder has, and are never followed as paths.
    """
    present = {file.name: file for file in path.parent.iterdir()}
    for name in sorted(record["files"] if names is None else set(names) & set(record["files"])):
        if name not in present or not present[name].is_file():
            raise data_error(f"{path.parent} is damaged: {name} is missing.")
        _check_file(present[name], record["files"][name], path.name)


def _check_file(file: Path, expected: object, record_name: str) -> None:
    size, written = file.stat().st_size, expected.get("bytes") if isinstance(expected, dict) else None
    if size != written:
        raise data_error(f"{file} is damaged: it has {size} bytes, and {written} were written.")
    try:
        found = _describe(file)
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror or error}.") from error
    if found != expected:
        raise data_error(f"{file} is damaged: its SHA-256 is not the one in {record_name}.")


def _describe(file: Path) -> dict[str, int | str]:
    return {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
