"""How often a file is opened."""

from __future__ import annotations

from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

import pytest


def count_opens(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets an entry, the mode, each time that ``path`` is opened from now on."""
    opened: list[str] = []
    target = path.resolve()
    original: Callable[..., BufferedReader] = Path.open

    def noting(self: Path, mode: str = "r", *arguments: int, **options: str) -> BufferedReader:
        if self.resolve() == target:
            opened.append(mode)
        return original(self, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", noting)
    return opened
