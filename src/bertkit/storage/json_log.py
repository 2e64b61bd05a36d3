"""A log of one JSON record per line, each with a checksum: damage to a line is noticed and costs that line only.

A crash can leave the last line incomplete; it is dropped. Any other line that cannot be read was damaged later: it is
set aside in a file of its own, and the lines after it are kept.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from bertkit.storage.atomic import flush_to_disk, write_file, write_text

_CHECKSUM = "crc32"


class LogContent(NamedTuple):
    """The records of a log, and its complete lines that cannot be read."""

    records: list[dict[str, Any]]
    damaged: list[bytes]


def open_log(path: Path) -> IO[str]:
    """Open a log to append to it. Raises OSError for a link or a device, which would send the records elsewhere."""
    _require_plain_file(path)
    return path.open("a", encoding="utf-8")


def format_record(record: Mapping[str, object]) -> str:
    """One line; a number that is not finite, which JSON does not have, becomes ``{"float": "nan"}``."""
    text = json.dumps({name: _to_json(value) for name, value in record.items()}, allow_nan=False)
    return json.dumps({**json.loads(text), _CHECKSUM: f"{zlib.crc32(text.encode()):08x}"}) + "\n"


def read_log(path: Path) -> LogContent:
    """The intact records and the damaged lines of a log; an incomplete last line is left out."""
    records: list[dict[str, Any]] = []
    damaged: list[bytes] = []
    *lines, _incomplete = path.read_bytes().split(b"\n")
    for line in lines:
        record = parse_record(line)
        if record is None:
            damaged.append(line + b"\n")
        else:
            records.append(record)
    return LogContent(records, damaged)


def rewrite_log(path: Path, keep: Callable[[Mapping[str, Any]], bool]) -> int:
    """Keep the intact records for which ``keep`` is true. Damaged lines are appended to ``NAME.damaged``.

    Returns the number of damaged lines. Raises OSError for a link or a device.
    """
    _require_plain_file(path)
    records, damaged = read_log(path)
    _set_aside(path, damaged)
    kept = "".join(format_record(record) for record in records if keep(record))
    if kept.encode() != path.read_bytes():
        write_text(path, kept)
    return len(damaged)


def truncate_log(path: Path) -> int:
    """Keep the records before the first damaged line, where later records mean nothing without the earlier ones.

    The damaged line and those after it are appended to ``NAME.damaged``. Returns their number. Raises OSError for a
    link or a device.
    """
    _require_plain_file(path)
    *lines, incomplete = path.read_bytes().split(b"\n")
    intact = next((number for number, line in enumerate(lines) if parse_record(line) is None), len(lines))
    kept, damaged = ([line + b"\n" for line in part] for part in (lines[:intact], lines[intact:]))
    _set_aside(path, damaged)
    if damaged or incomplete:
        write_file(path, lambda temporary: temporary.write_bytes(b"".join(kept)))
    return len(damaged)


def parse_record(line: bytes | str) -> dict[str, Any] | None:
    """The record of a complete line, without its checksum; None if the line is damaged."""
    try:
        record = json.loads(line)
        checksum = record.pop(_CHECKSUM)
        intact = checksum == f"{zlib.crc32(json.dumps(record, allow_nan=False).encode()):08x}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {name: _from_json(value) for name, value in record.items()} if intact else None


def _set_aside(path: Path, damaged: list[bytes]) -> None:
    if damaged:
        aside = path.with_name(f"{path.name}.damaged")
        with aside.open("ab") as file:
            file.writelines(damaged)
        flush_to_disk(aside)


def _require_plain_file(path: Path) -> None:
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file")


def _to_json(value: object) -> object:
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _from_json(value: object) -> object:
    return float(value["float"]) if isinstance(value, dict) and value.keys() == {"float"} else value
