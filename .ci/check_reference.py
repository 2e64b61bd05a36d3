"""Fail if docs/reference is not what ``make docs`` would write."""

from __future__ import annotations

import sys
from pathlib import Path

from bertkit.cli.reference import list_outdated

if __name__ == "__main__":
    outdated = list_outdated(Path(__file__).resolve().parents[1] / "docs" / "reference")
    if outdated:
        sys.exit(f"error: docs/reference is out of date: {', '.join(outdated)}. Run make docs.")
