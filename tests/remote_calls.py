"""Functions that processes of a Ray cluster call in tests; they import them from this module."""

from __future__ import annotations

import importlib
import time
from pathlib import Path


def double_slowly(number: int) -> tuple[int, str]:
    """Twice the number, after a fifth of a second, and the node on which it was computed."""
    time.sleep(0.2)
    node: str = importlib.import_module("ray").get_runtime_context().get_node_id()
    return 2 * number, node


def read_text(file: str) -> str:
    """The text of a file, whose path may be relative."""
    return Path(file).read_text()


def fail(number: int) -> int:
    """Raise an error of the kind that is a bug."""
    raise LookupError(f"number {number}")
