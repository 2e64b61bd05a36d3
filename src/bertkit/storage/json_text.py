"""JSON that may come from anywhere, parsed with one kind of error."""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
from collections import Counter
from itertools import pairwise
from typing import Any


class RepeatedKeyError(ValueError):
    """An object with two values under one key."""


def parse_json(text: str | bytes, *, allow_nan: bool = True, unique_keys: bool = False) -> Any:
    """The value of a JSON text. Of the values under one key the last counts, or with ``unique_keys`` none may repeat.

    Raises
    ------
    ValueError
        For every fault, also for values nested more deeply than Python's stack, and for NaN and infinity unless
        ``allow_nan``. A fault of syntax is a ``json.JSONDecodeError``, which has its place.
    """
    try:
        return json.loads(
            text,
            parse_constant=None if allow_nan else _refuse_constant,
            parse_float=None if allow_nan else _finite,
            object_pairs_hook=_unique if unique_keys else None,
        )
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error
    except ValueError as error:
        if "integer string conversion" in str(error):  # Python's words advise about its own settings
            raise ValueError("a number has more than 4,300 digits: put it in quotes") from error
        raise


def parse_list(text: str) -> Any:
    """The value of a JSON text, or of a list as Python or NumPy prints it, which is what pandas writes into a CSV file.

    NumPy puts no commas between texts, and Python would join them to one. Raises ValueError, as ``parse_json`` does for
    JSON.
    """
    try:
        return parse_json(text)
    except ValueError as error:
        try:
            return _parse_printed(text)
        except (ValueError, SyntaxError, tokenize.TokenError, MemoryError, RecursionError):
            raise error from None


def _parse_printed(text: str) -> Any:
    tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.string.strip()]
    if not any(one.type == other.type == tokenize.STRING for one, other in pairwise(tokens)):
        return ast.literal_eval(text)
    first, *texts, last = tokens
    if (first.string, last.string) != ("[", "]") or any(each.type != tokenize.STRING for each in texts):
        raise ValueError("texts without a comma between them")
    return [ast.literal_eval(each.string) for each in texts]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise RepeatedKeyError(f'more than one field "{key}"')
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is larger than any number that a computer counts with")
    return number


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
