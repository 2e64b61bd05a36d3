"""Values of tables as cells: texts, as a CSV file would have them, or values of JSON."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence

_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?")


class Structure(str):
    """A cell of JSON or Parquet that is a list or an object, as JSON. It may hold labels or choices and is no text."""

    __slots__ = ()


def find_repeated(names: Sequence[str]) -> str | None:
    """The name that most columns have, if several have it."""
    (name, count), *_ = Counter(names).most_common(1) or [("", 0)]
    return name if count > 1 else None


def spell_cell(value: object) -> str:
    """A value as a CSV file would have it; None, and NaN as data frames write a missing number, are empty cells."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, bytes):  # a text in a Parquet file without that type, as Spark and Impala may write it
        return value.decode("utf-8")
    if isinstance(value, list | tuple | dict):
        return Structure(json.dumps(value, ensure_ascii=False, default=str))
    return str(value)


def to_json(value: object) -> object:
    """The value of a table in memory as JSON can have it: a date, for example, as a text, and NaN as None."""
    if hasattr(value, "tolist"):  # of NumPy, which takes a tenth of a second to import
        value = value.tolist()
    if value is None or _is_missing(value):
        return None
    if isinstance(value, bytes):  # which may be a picture
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):  # half of a character cannot be written
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, set | frozenset):  # whose order differs from process to process
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {str(name): to_json(each) for name, each in value.items()}
    is_plain = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else spell_cell(value)


def _is_missing(value: object) -> bool:
    """Whether a value differs from itself, as NaN does; a comparison with pandas' NA has no truth value at all."""
    try:
        return bool(value != value)
    except TypeError:
        return True


def parse_number(text: str) -> float:
    """The number that a text spells: ``1``, ``-2.5``, ``1e-3``, ``nan``; ValueError if it spells none.

    It is none with Python's ``_``: ``1_000`` and ``2019_20`` may be names.
    """
    if "_" in text:
        raise ValueError(text)
    return float(text)


def find_decimal_comma(cells: Collection[str]) -> str | None:
    """The first number with a comma, such as 1,5, if all ``cells`` are such numbers or whole ones; else None."""
    if not all(map(_DECIMAL_COMMA.fullmatch, cells)):
        return None
    return next((cell for cell in cells if "," in cell), None)


def is_number(cell: str) -> bool:
    """Whether a cell spells a number."""
    try:
        parse_number(cell)
    except ValueError:
        return False
    return True
