"""What happens to stdout when nothing more can be written to it."""

from __future__ import annotations

import os
import sys


def abandon_stdout() -> None:
    """Discard what Python would write to stdout at its end, which would fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # it is closed
        sys.stdout = None
