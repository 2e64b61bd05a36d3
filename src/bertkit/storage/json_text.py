"""JSON that may come from anywhere, parsed with one kind of error."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes, *, allow_nan: bool = True) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ValueError
        For every fault, also for values nested more deeply than Python's stack, and for NaN and infinity unless
        ``allow_nan``. A fault of syntax is a ``json.JSONDecodeError``, which has its place.
    """
    try:
        return json.loads(text) if allow_nan else json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
