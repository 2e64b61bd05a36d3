"""Compare the version of the package with the newest heading of CHANGELOG.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find(pattern: str, path: str) -> str:
    """What the first match of ``pattern`` in ``path`` captures."""
    found = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found[1] if found else "nothing"


if __name__ == "__main__":
    version = find(r'^__version__ = "(.+)"$', "src/bertkit/_version.py")
    heading = find(r"^## ([0-9]\S*)", "CHANGELOG.md")
    if version != heading:
        sys.exit(f"error: _version.py says {version}, but the newest heading of CHANGELOG.md is {heading}.")
