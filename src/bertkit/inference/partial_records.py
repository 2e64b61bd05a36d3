"""The finished part of an output that is being written, from which the same command continues.

It is the partial file of the output (``storage.outputs``), with one record and its checksum per line. Its first record
is a fingerprint of the model and the input: the same command continues after the last intact line, and another model or
another input starts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit.errors import data_error
from bertkit.storage.json_log import format_record, parse_record


def keep_intact(records: Path, fingerprint: str) -> int:
    """Truncate ``records`` after the last line before any damage, and count the records that remain.

    A file of another fingerprint, or of none, starts again.
    """
    header = format_record({"fingerprint": fingerprint}).encode()
    count, size = 0, len(header)
    with records.open("rb+") as file:
        if not fingerprint or file.readline() != header:
            file.seek(0)
            file.truncate()
            file.write(header)
            return 0
        for line in file:
            if not line.endswith(b"\n") or parse_record(line) is None:
                break
            count, size = count + 1, size + len(line)
        file.truncate(size)
    return count


def keep_first(records: Path, count: int) -> None:
    """Keep the first ``count`` records."""
    with records.open("rb+") as file:
        file.truncate(sum(len(line) for line in islice(file, 1 + count)))


def read_records(records: Path) -> Iterator[dict[str, Any]]:
    """The records after the fingerprint, one by one."""
    with records.open("rb") as file:
        file.readline()
        for line in file:
            record = parse_record(line)
            if record is None:
                raise data_error(f"{records} is damaged. Repeat the command: it continues after the last intact row.")
            yield record
