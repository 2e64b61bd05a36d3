"""API keys: read from a file, kept as hashes, compared in constant time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import stat
from pathlib import Path

from bertkit.errors import data_error, usage_error

_SHORTEST_KEY = 8


class ApiKeys:
    """The keys that a server accepts; without any, no key is needed."""

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        self._hashes = [_hash(key) for key in keys]

    @property
    def needed(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._hashes)

    @classmethod
    def read(cls, path: Path) -> ApiKeys:
        """The keys in a file, one per line; empty lines and lines that begin with # are left out."""
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise usage_error(f"no API keys at {path}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise data_error(f"{path} is not UTF-8.") from error
        keys = tuple(line for line in map(str.strip, lines) if line and not line.startswith("#"))
        if not keys:
            raise data_error(f"{path} has no key: write one per line.")
        if min(map(len, keys)) < _SHORTEST_KEY:
            raise data_error(f"{path} has a key of less than {_SHORTEST_KEY} characters.")
        return cls(keys)

    def allow(self, authorization: str) -> bool:
        """Whether a request with this ``Authorization`` header may pass.

        The key comes after ``Bearer``, as the password of ``Basic``, or alone, as llama-index sends it. Every key is
        compared, so that the time says nothing about them.
        """
        if not self.needed:
            return True
        sent = authorization.encode("latin-1", "replace").decode("utf-8", "surrogateescape")  # headers came as bytes
        given = _hash(_key_in(sent))
        found = [hmac.compare_digest(given, known) for known in self._hashes]
        return any(found)


def is_readable_by_others(path: Path) -> bool:
    """Whether users who do not own a file, and are not in its group, may read it."""
    return bool(path.stat().st_mode & stat.S_IROTH)


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _key_in(authorization: str) -> str:
    scheme, _, rest = authorization.strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return rest.strip()
        case "basic":
            try:
                return base64.b64decode(rest, validate=True).decode("utf-8").partition(":")[2]
            except ValueError:  # no base64, not ASCII, or not UTF-8 inside
                return ""
    return authorization.strip()
