"""An exclusive lock between processes, on a file or a folder.

The operating system releases the lock when the process that holds it ends, however it ends. So two
processes never do the same work at the same time, and the work of a killed process can be taken by another.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LockHeldError(Exception):
    """Another process holds the lock."""


@contextmanager
def exclusive_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of ``path`` to the end of the ``with`` block; a file that does not exist is made, and stays.

    Raises LockHeldError if another process holds it, unless ``wait``; OSError if ``path`` cannot be opened or is a file
    behind a symbolic link, which another folder may own.
    """
    descriptor = _open_locked(path, wait)
    while not _is_at(descriptor, path):  # its holder deleted the file between the opening and the lock
        os.close(descriptor)
        descriptor = _open_locked(path, wait)
    try:
        yield
    finally:
        os.close(descriptor)


def _open_locked(path: Path, wait: bool) -> int:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise LockHeldError(f"another process holds the lock of {path}") from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
