"""The fields of records, which are frozen dataclasses: their names, paths and types."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bertkit.ranges import is_union


def field_types(kind: Any) -> dict[str, Any]:
    """The types of the fields of a record, with their annotations; what belongs to the class alone is no field."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


def field_paths(kind: object, prefix: str = "") -> list[str]:
    """Every dotted path that a record of type ``kind`` has."""
    found = []
    for name, hint in field_types(kind).items():
        nested = find_record(hint)
        found += field_paths(nested, f"{prefix}{name}.") if nested else [f"{prefix}{name}"]
    return found


def leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value of nested dictionaries with its dotted path."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def find_record(hint: object) -> object:
    """The dataclass in ``Kind`` or ``Kind | None``, else None."""
    kinds = typing.get_args(hint) if is_union(hint) else (hint,)
    return next(filter(dataclasses.is_dataclass, kinds), None)


def without_annotations(hint: object) -> object:
    """A type without its annotations."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def decode(kind: type, value: object) -> object:
    """``value`` as a ``kind`` that msgspec does not know: a path, or what is one already."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    if isinstance(value, kind):
        return value
    raise TypeError(f"expected {kind.__name__}")
