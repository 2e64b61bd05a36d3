"""The folder where bertkit keeps what it can make again: measured paths and compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path | None:
    """``bertkit`` in ``$XDG_CACHE_HOME`` or ``~/.cache``; None for a user without a home. It may not exist yet."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertkit"
    except RuntimeError:  # the user of a container may have no entry in /etc/passwd
        return None
