"""Settings, which change the fields of records.

A *setting* is a value for one field, which is named by a dotted path such as ``optimizer.lr``. Settings come from a
TOML or JSON file, from ``--set`` or from an option. Each knows its origin, so that an error can name the line, and a
run can record why it has its values.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from bertkit.config.fields import decode, field_paths, field_types, leaves
from bertkit.config.records import to_plain
from bertkit.config.spelling import explain_unknown
from bertkit.errors import BertkitError, usage_error
from bertkit.ranges import find_range, is_union, list_problems

Record = TypeVar("Record")

_WORD = re.compile(r"(?<![\w./-])[\w.]+(?![\w/-])")
"""A word in a message, such as the path of a setting, that is no part of the path of a file or of an option."""

_EXPECTED: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    types.NoneType: "null",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value for the field at ``path``, and where it came from.

    ``is_text`` is set for a value from the command line, which is converted to the type of the field.
    """

    path: str
    value: object
    origin: str
    is_text: bool = False


def parse_settings(assignments: Iterable[str] | Mapping[str, object]) -> list[Setting]:
    """The settings of ``--set``: ``path.to.field=value`` as typed, or a dictionary of values by path."""
    if isinstance(assignments, Mapping):
        return [Setting(path, value, "--set") for path, value in assignments.items()]
    settings = []
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path.strip():
            raise usage_error(f"--set {assignment}: expected path.to.field=value.")
        settings.append(Setting(path.strip(), value.strip(), "--set", is_text=True))
    return settings


def settings_of(record: object, origin: str, prefix: str = "") -> list[Setting]:
    """Every value of a record as a setting below ``prefix``, such as the fields that ``--size mini`` sets."""
    head = f"{prefix}." if prefix else ""
    return [Setting(head + path, value, origin) for path, value in leaves(to_plain(record))]


def apply(record: Record, settings: Sequence[Setting]) -> Record:
    """The record with the settings applied; of several for one field the last one wins.

    All fields of a record change at once, so that its validation sees final values only.
    """
    return typing.cast(Record, _apply(record, [(setting.path.split("."), setting) for setting in settings], record))


def refuse_without_effect(
    record: object, settings: Iterable[Setting], *, varied: Mapping[str, Collection[str]] | None = None
) -> None:
    """Raise a usage error for a setting that ``needs`` another one, if neither ``record`` nor ``varied`` has it."""
    for setting in settings:
        for owner, rest in _owners(record, setting.path):
            needs: Mapping[str, str] = owner.needs() if hasattr(owner, "needs") else {}
            needed = needs.get(rest) or needs.get(rest.partition(".")[0], "")  # such as masking for all of its fields
            switch, _, values = needed.partition("=")
            if needed and not set(values.split(" or ")).intersection((varied or {}).get(switch, ())):
                raise usage_error(f"{setting.origin}: {setting.path} has no effect without {needed}.")


def origins(record: object, settings: Iterable[Setting]) -> dict[str, str]:
    """Where each value of ``record`` came from, by dotted path; ``default`` if it was not set."""
    found = {path: "default" for path, _ in leaves(to_plain(record))}
    for setting in settings:
        below = [path for path in found if path.startswith(f"{setting.path}.")]
        found |= dict.fromkeys(below or [setting.path], setting.origin)
    return found


def _owners(record: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Every record on the way to the field at ``path``, with the path from there."""
    yield record, path
    name, _, rest = path.partition(".")
    if rest and hasattr(record, name):  # and not the name of an entry of a table
        yield from _owners(getattr(record, name), rest)


def _apply(record: Any, parts: list[tuple[list[str], Setting]], root: object) -> Any:
    hints = field_types(type(record))
    grouped: dict[str, list[tuple[list[str], Setting]]] = {}
    for (name, *rest), setting in parts:
        if name not in hints:
            known = [*field_paths(type(root)), *(path for path, _ in leaves(to_plain(root)))]
            raise usage_error(f"{_where(setting)}{explain_unknown(setting.path, known)}")
        if rest or setting.value != {} or not dataclasses.is_dataclass(getattr(record, name)):  # {}: nothing is set
            grouped.setdefault(name, []).append((rest, setting))
    changes: dict[str, object] = {}
    for name, group in grouped.items():
        if dataclasses.is_dataclass(getattr(record, name)) and all(rest for rest, _ in group):
            changes[name] = _apply(getattr(record, name), group, root)
        elif _is_table(hints[name]) and all(rest for rest, _ in group):
            entries = {".".join(rest): _convert(setting, typing.get_args(hints[name])[1]) for rest, setting in group}
            changes[name] = {**getattr(record, name), **entries}
        else:
            rest, setting = group[-1]
            if rest or dataclasses.is_dataclass(hints[name]) or dataclasses.is_dataclass(getattr(record, name)):
                whole = setting.path.removesuffix("." + ".".join(rest)) if rest else setting.path
                problem = "has no fields" if rest else "is not one value; set its fields"
                raise usage_error(f"{_where(setting)}{whole} {problem}.")
            changes[name] = _convert(setting, hints[name])
    try:
        return dataclasses.replace(record, **changes)
    except BertkitError as error:
        words = {word.rstrip(".").rpartition(".")[2] for word in _WORD.findall(str(error))}
        named = [setting for _, setting in parts if setting.path.rpartition(".")[2] in words]
        raise usage_error(f"{_where([parts[-1][1], *named][-1])}{error}") from error


def _is_table(hint: object) -> bool:
    """Whether a field is a mapping from names to plain values, whose entries can be set one by one."""
    return typing.get_origin(hint) is Mapping and not dataclasses.is_dataclass(typing.get_args(hint)[1])


def _convert(setting: Setting, hint: object) -> object:
    value = setting.value
    if isinstance(value, Number) and hasattr(value, "item"):
        value = value.item()  # a number of NumPy, as scikit-learn's searches draw
    try:
        if setting.is_text and isinstance(value, str) and value[:1] in ("[", "{"):
            value = json.loads(value)
        converted = msgspec.convert(value, hint, strict=not setting.is_text, dec_hook=decode)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        shown = value if setting.is_text else json.dumps(value, default=str)
        raise usage_error(
            f"{_where(setting)}{setting.path} is {str(shown)[:200]}; expected {_describe(hint)}."
        ) from error
    for problem in list_problems(setting.path, converted, hint):
        raise usage_error(f"{_where(setting)}{problem}")
    return converted


def _where(setting: Setting) -> str:
    return f"{setting.origin}: "


def _describe(hint: object) -> str:
    """A type in words."""
    if typing.get_origin(hint) is Annotated:
        kind, range = typing.get_args(hint)[0], find_range(hint)
        return _describe(kind) + (f" {range}" if range else "")
    if typing.get_origin(hint) is Literal:
        return " or ".join(str(choice) for choice in typing.get_args(hint))
    if is_union(hint):
        return " or ".join(_describe(each) for each in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        first, *others = typing.get_args(hint)
        count = "" if others == [...] else f" of {1 + len(others)}"
        quoted = " in double quotes" if _describe(first) == _EXPECTED[str] else ""
        return f"a list{count} in brackets, each item {_describe(first)}{quoted}"
    if _is_table(hint):
        return f"an object in braces, each value {_describe(typing.get_args(hint)[1])}"
    return _EXPECTED.get(hint, str(hint))
