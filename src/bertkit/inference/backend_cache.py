"""The file that remembers which backend was the fastest, for this processor and these libraries."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from bertkit._version import __version__
from bertkit.errors import BertkitError
from bertkit.machine.processor import processor_name
from bertkit.storage.atomic import make_folder, read_object, write_json
from bertkit.storage.user_cache import user_cache


@dataclass(frozen=True, slots=True)
class BackendCache:
    """A JSON file: processor and versions -> size of the model -> fastest backend.

    What another machine or another version measured is not used. A damaged file counts as empty, and a file that cannot
    be written is measured again by the next process.
    """

    file: Path

    @staticmethod
    def of_user() -> BackendCache:
        """The file in ``$XDG_CACHE_HOME`` or ``~/.cache``; without a home, in the folder of temporary files."""
        return BackendCache((user_cache() or Path(tempfile.gettempdir()) / "bertkit") / "backends.json")

    def find(self, key: str) -> str | None:
        """What was remembered under ``key`` on this machine."""
        own = self._content().get(_machine())
        found = own.get(key) if isinstance(own, Mapping) else None
        return found if isinstance(found, str) else None

    def remember(self, key: str, value: str) -> None:
        """Keep ``value`` under ``key``."""
        content = self._content()
        own = content.get(_machine())
        content[_machine()] = {**(own if isinstance(own, Mapping) else {}), key: value}
        try:
            make_folder(self.file.parent)
            write_json(self.file, content)
        except (BertkitError, OSError):
            pass  # a cache in a read-only home: nothing is lost but the time of the next measurement

    def _content(self) -> dict[str, object]:
        try:
            return dict(read_object(self.file))
        except BertkitError:
            return {}


def _machine() -> str:
    return f"{processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}, bertkit {__version__}"
