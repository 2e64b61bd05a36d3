"""The output of a preparation in an object store, or in another file system of fsspec.

Locks and atomic renames need a folder of this machine, so everything is written into one first, where an interrupted
preparation continues, and uploaded at the end: the manifest last, so a place with a manifest is complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bertkit.data.shard_writer import has_journal
from bertkit.data.shards import JOB, MANIFEST, Manifest, read_manifest
from bertkit.errors import BertkitError, usage_error
from bertkit.storage.checksums import encode_checked
from bertkit.storage.remote import RemotePath


class RemoteOutput:
    """The place ``target``, and the folder of this machine that is uploaded to it."""

    def __init__(self, target: RemotePath) -> None:
        self.target = target
        self._is_begun = False
        name = hashlib.sha256(str(target).encode()).hexdigest()[:16]
        self.folder = Path(tempfile.gettempdir()) / f"bertkit-{os.getuid()}-{name}"

    def begin(self, job: Mapping[str, object]) -> Manifest | None:
        """Record ``job`` at the target, which shows at once whether it can be written; the manifest if it is done.

        Raises a usage error if the target has anything else.
        """
        record = encode_checked(job).encode(errors="surrogatepass")
        found = {each.name for each in self.target.iterdir()} if self.target.exists() else set()
        if found and not (JOB in found and (self.target / JOB).read_bytes() == record):
            raise usage_error(f"{self.target} is not empty and was not made by this command. Choose another -o.")
        if MANIFEST in found:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / MANIFEST).write_bytes((self.target / MANIFEST).read_bytes())
                return read_manifest(Path(folder))
        if not found:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / JOB).write_bytes(record)
                _beside(self.target, JOB).upload(Path(folder) / JOB)
        self._is_begun = True
        return None

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """Upload the folder when the context ends without an error, if its job has begun, and delete it.

        After an error before the first shard is finished, the record of the job at the target is deleted.
        """
        try:
            yield
        except BertkitError:
            if self._is_begun and not has_journal(self.folder):
                self._is_begun = False
                with suppress(BertkitError):  # the error matters more
                    _beside(self.target, JOB).unlink()
            raise
        finally:
            if not self._is_begun:  # nothing was written into it
                with suppress(OSError):
                    self.folder.rmdir()
        if self._is_begun:
            files = sorted(path for path in self.folder.rglob("*") if path.is_file())
            for file in sorted(files, key=lambda path: path.name == MANIFEST):
                _beside(self.target, file.relative_to(self.folder).as_posix()).upload(file)
            shutil.rmtree(self.folder)


def _beside(target: RemotePath, name: str) -> RemotePath:
    path = target / name
    assert isinstance(path, RemotePath)
    return path
