"""What a field of a request may be, in words: the hint of an error about a value of another type.

`inputs` has a text and needs an object    ->    Send {"question": ..., "context": ...}.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import inspect

from bertkit.errors import did_you_mean

_STEP = re.compile(r"\[[^\]]*\]|[^.\[]+")
"""A field, or an item of a list, in a path such as ``inputs[0].text``."""

_NAMES: dict[type[inspect.Type], str] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.DictType: "an object",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
    inspect.TupleType: "a list",
}


def suggest_field(record: type[Any], path: str, name: str) -> str:
    """A field like ``name`` of the object at ``path`` in a ``record``; empty if there is none."""
    structs = [each for each in _find_kinds(record, path) if isinstance(each, inspect.StructType)]
    return did_you_mean(name, [field.encode_name for each in structs for field in each.fields]).strip()


def suggest_value(record: type[Any], path: str) -> str:
    """What may be at ``path`` in a ``record``, as a sentence; empty if that is unknown."""
    found = dict.fromkeys(filter(None, map(_describe, _find_kinds(record, path))))
    return f"Send {' or '.join(found)}." if found else ""


def _find_kinds(record: type[Any], path: str) -> list[inspect.Type]:
    """The types of a value at ``path``; none if the record has no such place."""
    kinds = _expand(inspect.type_info(record))
    for step in _STEP.findall(path):
        kinds = [inner for each in kinds for inner in _enter(each, step)]
    return kinds


def _expand(kind: inspect.Type) -> list[inspect.Type]:
    return list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]


def _enter(kind: inspect.Type, step: str) -> list[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        return [each for field in kind.fields if field.encode_name == step for each in _expand(field.type)]
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and step.startswith("["):
        return _expand(kind.item_type)
    return []


def _describe(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.StructType):
        required = [field.encode_name for field in kind.fields if field.required]
        names = required or [field.encode_name for field in kind.fields]
        return "{" + ", ".join(f'"{name}": ...' for name in names) + "}"
    if isinstance(kind, inspect.LiteralType):
        return " or ".join(f'"{value}"' for value in kind.values)
    return _NAMES.get(type(kind), "")
