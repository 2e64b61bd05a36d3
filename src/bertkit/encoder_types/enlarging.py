"""A larger network with the weights of a smaller one of the same kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any


def enlarge(encoder: Any, **changes: int) -> Any:
    """A larger network of the same kind, with ``changes`` to its configuration.

    It has the weights of ``encoder``; rows that a longer table adds, and new parameters, are initialised.
    """
    larger = type(encoder)(replace(encoder.config, **changes))
    weights = larger.state_dict()
    for name, weight in encoder.state_dict().items():
        weights[name][: len(weight)] = weight
    return larger
