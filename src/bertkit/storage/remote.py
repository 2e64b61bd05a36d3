"""Files in object stores, on web servers and in other file systems of fsspec, as paths.

``s3://bucket/a.jsonl`` needs the package s3fs, ``gs://...`` gcsfs, and so on; they find credentials in their own way.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from bertkit.errors import data_error, usage_error
from bertkit.optional import require

_URL = re.compile(r"([a-z][a-z0-9+]+):/+(.+)", re.DOTALL)
"""One slash is enough: ``Path("s3://bucket")`` has lost the other."""

_SCHEME_ALONE = re.compile(r"[a-z][a-z0-9+]+:/+")


class _Reader(io.RawIOBase):
    """A file of fsspec whose errors while it is read are OSErrors: packages raise exceptions of their own."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._file.readinto(buffer))
        except OSError:
            raise
        except Exception as error:
            raise OSError(str(error) or type(error).__name__) from error

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _RemoteFile(io.BufferedReader):
    """A file of fsspec as ``open`` returns files; those of some packages lack these two."""

    mode = "rb"
    name = ""


class RemotePath(type(Path())):  # type: ignore[misc]
    """A file or a folder of a file system of fsspec. What pathlib reads works; ``upload`` writes, ``unlink`` deletes.

    Raises a usage error if there is no such file system or its package is missing, and a data error if it refuses.
    """

    def __str__(self) -> str:
        scheme, _, path = super().__str__().partition(":/")
        return f"{scheme}://{path}"

    def open(self, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        """The bytes of the file."""
        with self._explained() as files:
            return _RemoteFile(_Reader(files.open(str(self), mode)))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The size of the file; everything else is 0."""
        with self._explained() as files:
            return os.stat_result((0, 0, 0, 0, 0, 0, int(files.info(str(self))["size"] or 0), 0, 0, 0))

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        with self._explained() as files:
            return bool(files.exists(str(self)))

    def is_file(self) -> bool:
        """Whether there is a file."""
        with self._explained() as files:
            return bool(files.isfile(str(self)))

    def is_dir(self) -> bool:
        """Whether there is a folder: in an object store, whether a name begins like this."""
        with self._explained() as files:
            return bool(files.isdir(str(self)))

    def iterdir(self) -> Iterator[RemotePath]:
        """What is in the folder."""
        with self._explained() as files:
            return iter([self._beside(files, name) for name in files.ls(str(self), detail=False)])

    def files_below(self) -> list[RemotePath]:
        """All files below the folder, sorted, without hidden ones."""
        with self._explained() as files:
            found = sorted(self._beside(files, name) for name in files.find(str(self)))
        return [each for each in found if not any(part.startswith(".") for part in each.relative_to(self).parts)]

    def upload(self, file: Path) -> None:
        """Write the content of a file of this machine here; folders are made where the file system has them."""
        with self._explained("written") as files:
            files.put_file(str(file), str(self))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the file."""
        with self._explained("deleted") as files:
            if not missing_ok or files.exists(str(self)):
                files.rm_file(str(self))

    def _beside(self, files: Any, name: str) -> RemotePath:
        return RemotePath(files.unstrip_protocol(name))

    @contextmanager
    def _explained(self, done: str = "read") -> Iterator[Any]:
        """The file system of this path; its errors are one line."""
        fsspec = require("fsspec", extra="remote", purpose=str(self))
        scheme = str(self).partition(":")[0]
        try:
            files = fsspec.filesystem(scheme)
        except (ImportError, ValueError) as error:
            raise usage_error(f"{self}: {error}") from error
        try:
            yield files
        # Every package raises exceptions of its own, those about credentials included.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise data_error(
                f"{self} cannot be {done}: {reason}. Is the name right, and are there credentials for {scheme}://?"
            ) from error


def is_url(given: str | PurePath) -> bool:
    """Whether ``given`` is ``scheme://...``, and no path on this machine."""
    return _URL.fullmatch(str(given)) is not None and not Path(given).exists()


def to_path(given: str | PurePath) -> Path:
    """The path of a file of this machine, or of ``scheme://...``. Raises a usage error for a scheme without a path."""
    if isinstance(given, RemotePath):
        return given
    if _SCHEME_ALONE.fullmatch(str(given)) and not Path(given).exists():
        raise usage_error(f"{given} names no file or folder: give the whole URL, such as s3://bucket/data.")
    found = _URL.fullmatch(str(given))
    if found is None or Path(given).exists():
        return Path(given)
    if found[1] == "file":
        return Path(f"/{unquote(found[2])}")
    return RemotePath(str(given))
