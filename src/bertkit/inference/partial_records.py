"""The finished part of an output that is being written, from which the same command continues.

It is a hidden file beside the output, locked while a process writes it, with one record and its checksum per line. Its
first record is a fingerprint of the model and the input: the same command continues after the last intact line, and
another model or another input starts again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit.errors import data_error, usage_error
from bertkit.storage.atomic import explain_output, make_folder
from bertkit.storage.checksums import sha256_of
from bertkit.storage.json_log import format_record, parse_record
from bertkit.storage.locks import LockHeldError, exclusive_lock


def records_path(output: Path) -> Path:
    """The hidden file of records of ``output``."""
    return output.with_name(f".bertkit-partial-{output.name}")


@contextmanager
def locked_records(output: Path) -> Iterator[Path]:
    """The hidden file of records, which no other process writes meanwhile."""
    records = records_path(output)
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(records))
        except LockHeldError as error:
            raise usage_error(f"{output} is being written by another process. Choose another -o file.") from error
        except OSError as error:
            raise usage_error(f"cannot write to {output.parent}: {error.strerror}. Choose another -o file.") from error
        yield records


@contextmanager
def locked_output(output: Path) -> Iterator[None]:
    """Lock a folder that is written at once; the hidden file beside it, which is the lock, is deleted in the end."""
    with explain_output(output):
        make_folder(output.parent)
    with locked_records(output) as lock:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def fingerprint_of(paths: Iterable[Path], *facts: str) -> str:
    """A hash of the content of files, and of the files in folders, and of further ``facts``."""
    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    hashes = [sha256_of(file) for file in files if file.is_file()]
    return hashlib.sha256("\n".join([*hashes, *facts]).encode()).hexdigest()[:16]


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
                raise data_error(f"{records} is damaged. Repeat the command: it goes on before the damage.")
            yield record
