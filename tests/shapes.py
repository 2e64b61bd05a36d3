"""The type checker of ``make test``: beartype, which accepts an int where a float is annotated.

``pytest --jaxtyping-packages=bertkit,shapes.checked`` checks every annotation of bertkit at every call: types, and the
shapes and number formats of tensors, with each letter the same size throughout one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception

Checked = TypeVar("Checked", bound=Callable[..., Any])

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(function: Checked) -> Checked:
    """``function`` with its annotations checked; a method that gives ``Self``, which beartype knows in whole classes
    alone, as it is.
    """
    try:
        return _check(function)
    except BeartypeDecorHintPep673Exception:
        return function
