"""Columns of 0 and 1, one for each label, as tables of several labels per text often have them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bertkit.errors import data_error, usage_error

_VALUES: Mapping[str, bool] = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
INDICATORS = _VALUES.keys()
"""How it is spelled whether a label applies, in lower case."""

UNKNOWN = ("", "-1", "-1.0")
"""How a label that is not known is spelled."""


def are_indicators(cells: Sequence[str]) -> bool:
    """Whether every cell is 0, 1, a truth value or unknown, and some are 0; a rare label may apply to no row here."""
    known = {cell.strip().casefold() for cell in cells}.difference(UNKNOWN)
    return {_VALUES.get(value) for value in known} in ({False}, {False, True})


def join_indicators(cells: Mapping[str, str], where: str) -> str:
    """The cell of several labels, a JSON list, for the indicators of a row by label; empty if all are unknown."""
    values = {label: cell.strip().casefold() for label, cell in cells.items()}
    if all(value in UNKNOWN for value in values.values()):
        return ""
    for label, value in values.items():
        if value not in _VALUES:
            raise data_error(f'{where}: column "{label}" is {cells[label][:40] or "empty"}. It must be 0 or 1.')
    return json.dumps([label.strip() for label, value in values.items() if _VALUES[value]], ensure_ascii=False)


def split_names(label: str | None, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that ``--label`` names: one, or several with commas between; none if it is None."""
    if label is None:
        return ()
    if label in columns or "," not in label:
        return (label,)
    names = [name if name in columns else name.strip() for name in label.split(",")]
    if not all(names):
        raise usage_error(f'label is "{label}"; names of columns are separated by one comma each.')
    return tuple(names)
