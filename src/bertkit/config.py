"""Records (frozen dataclasses) written to JSON and read again, and settings that change their fields.

A *setting* is a value for one field, which is named by a dotted path such as ``optimizer.lr``. Settings come from a
TOML or JSON file, from ``--set`` or from an option. Each knows its origin, so that an error can name the line, and a
run can record why it has its values. An unknown key is an error with the nearest spelling; nothing is ignored.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from bertkit.errors import BertkitError, data_error, find_nearest, usage_error
from bertkit.ranges import find_range, is_union, list_problems
from bertkit.scores import UNDEFINED, UNDEFINED_IS_NULL
from bertkit.storage.json_text import parse_json

Record = TypeVar("Record")

_JSON_KEY_OR_BRACE = re.compile(r'"(?P<name>(?:[^"\\]|\\.)*)"(?P<is_key>\s*:)?|[{}]')
"""A text, which may be a key and may have braces in it, or a brace."""

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

SYNONYMS: Mapping[str, str] = {
    "adam_beta1": "beta1",
    "adam_beta2": "beta2",
    "adam_epsilon": "eps",
    "attention_probs_dropout_prob": "attention_dropout",
    "bf16": "precision",
    "epsilon": "eps",
    "fp16": "precision",
    "gradient_accumulation_steps": "micro_batch_size",
    "hidden_dropout_prob": "dropout",
    "learning_rate": "lr",
    "max_grad_norm": "clip_norm",
    "max_position_embeddings": "max_positions",
    "max_seq_length": "max_length",
    "max_steps": "steps",
    "mlm_probability": "rate",
    "num_attention_heads": "num_heads",
    "num_epochs": "epochs",
    "num_hidden_layers": "num_layers",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "random_seed": "seed",
    "train_batch_size": "batch_size",
    "warmup_proportion": "warmup",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
}
"""Names that other libraries have for a setting -> the last part of its path here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value for the field at ``path``, and where it came from.

    ``is_text`` is set for a value from the command line, which is converted to the type of the field.
    """

    path: str
    value: object
    origin: str
    is_text: bool = False


def to_json(record: object) -> Any:
    """A record as plain JSON: dictionaries, lists, text, finite numbers, booleans and None, which NaN becomes."""
    return _finite(msgspec.to_builtins(record, str_keys=True, enc_hook=_encode))


def from_json(kind: type[Record], value: object, *, source: str = "the record") -> Record:
    """The record of type ``kind`` from the ``value`` that ``to_json`` made of it; ``source`` names it in errors."""
    for path in _unknown_keys(kind, value):
        raise data_error(f"{source}: {_explain_unknown(path, _paths(kind))}")
    try:
        return msgspec.convert(_restore_undefined(kind, value), kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        reason = error.__cause__ if isinstance(error.__cause__, BertkitError) else error  # it adds a path to a sentence
        raise data_error(f"{source}: {str(reason).rstrip('.')}.") from error


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


def read_settings(path: Path) -> list[Setting]:
    """Settings from a TOML or JSON file (by its suffix), each with its line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        is_json = path.suffix.lower() == ".json"
        tree = parse_json(text, unique_keys=True) if is_json else tomllib.loads(text)
        leaves = list(_leaves(tree)) if isinstance(tree, dict) else []
    except OSError as error:
        raise usage_error(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # ValueError is the base class of what JSON, TOML and UTF-8 raise
        raise usage_error(f"{path}: {error}.") from error
    if not isinstance(tree, dict):
        raise usage_error(f"{path}: expected keys and values, found {type(tree).__name__}.")
    locate = _line_in_json if is_json else _line_in_toml
    return [Setting(key, value, f"{path}:{locate(text, key)}") for key, value in leaves]


def settings_of(record: object, origin: str, prefix: str = "") -> list[Setting]:
    """Every value of a record as a setting below ``prefix``, such as the fields that ``--size mini`` sets."""
    head = f"{prefix}." if prefix else ""
    return [Setting(head + path, value, origin) for path, value in _leaves(to_json(record))]


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
    found = {path: "default" for path, _ in _leaves(to_json(record))}
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
    hints = _types_of(type(record))
    grouped: dict[str, list[tuple[list[str], Setting]]] = {}
    for (name, *rest), setting in parts:
        if name not in hints:
            known = [*_paths(type(root)), *(path for path, _ in _leaves(to_json(root)))]
            raise usage_error(f"{_where(setting)}{_explain_unknown(setting.path, known)}")
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
        converted = msgspec.convert(value, hint, strict=not setting.is_text, dec_hook=_decode)
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


def _encode(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # an array, or a number, of NumPy
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored in a record")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _decode(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    if isinstance(value, kind):
        return value
    raise TypeError(f"expected {kind.__name__}")


def _leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _paths(kind: object, prefix: str = "") -> list[str]:
    """Every dotted path that a record of type ``kind`` has."""
    found = []
    for name, hint in _types_of(kind).items():
        nested = _record_in(hint)
        found += _paths(nested, f"{prefix}{name}.") if nested else [f"{prefix}{name}"]
    return found


def _types_of(kind: Any) -> dict[str, Any]:
    """The types of the fields of a record, with their annotations; what belongs to the class alone is no field."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


def _plain(hint: object) -> object:
    """A type without its annotations."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _record_in(hint: object) -> object:
    """The dataclass in ``Kind`` or ``Kind | None``, else None."""
    kinds = typing.get_args(hint) if is_union(hint) else (hint,)
    return next(filter(dataclasses.is_dataclass, kinds), None)


def _restore_undefined(hint: object, value: Any) -> Any:
    """``value`` with NaN in place of each null whose type is ``Score``: JSON has no NaN."""
    if value is None and UNDEFINED_IS_NULL in getattr(hint, "__metadata__", ()):
        return UNDEFINED
    hint = _plain(hint)
    record = _record_in(hint)
    if isinstance(value, dict) and record:
        hints = _types_of(record)
        return {name: _restore_undefined(hints.get(name), item) for name, item in value.items()}
    if is_union(hint):
        hint = next(filter(typing.get_args, typing.get_args(hint)), hint)
    arguments = typing.get_args(hint)
    if isinstance(value, dict) and arguments:
        return {name: _restore_undefined(arguments[-1], item) for name, item in value.items()}
    if isinstance(value, list) and arguments:
        return [_restore_undefined(arguments[0], item) for item in value]
    return value


def _unknown_keys(hint: object, value: object, prefix: str = "") -> Iterator[str]:
    """Keys that the records in ``value`` do not have; msgspec would ignore them."""
    hint = _plain(hint)
    if record := _record_in(hint):
        hints = _types_of(record)
        for key, item in value.items() if isinstance(value, dict) else ():
            if key in hints:
                yield from _unknown_keys(hints[key], item, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}"
    elif isinstance(value, dict) and (arguments := typing.get_args(hint)):
        for key, item in value.items():
            yield from _unknown_keys(arguments[-1], item, f"{prefix}{key}.")
    elif isinstance(value, list) and (arguments := typing.get_args(hint)):
        for item in value:
            yield from _unknown_keys(arguments[0], item, prefix)


def _explain_unknown(path: str, known: Sequence[str]) -> str:
    """What is wrong with a key that no record has, and the setting that may be meant."""
    return f"unknown key {path}.{_nearest(path, known)}"


def _nearest(path: str, known: Sequence[str]) -> str:
    """The setting that other libraries call ``path``, or the nearest spelling, also in the wrong place."""
    folder, _, name = path.rpartition(".")
    in_folder = {each: each.rpartition(".")[2] for each in known if each.rpartition(".")[0] == folder}
    elsewhere = {each: each.rpartition(".")[2] for each in known}
    if (same := SYNONYMS.get(name)) in elsewhere.values():
        return f" Did you mean {next(each for each, last in (in_folder | elsewhere).items() if last == same)}?"
    for candidates in (in_folder, elsewhere):
        if near := find_nearest(name, candidates.values()):
            return f" Did you mean {next(each for each, last in candidates.items() if last == near)}?"
    return ""


def _line_in_toml(text: str, path: str) -> int:
    """The line that sets ``path``: its last key, below the table that the other keys name."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _toml_key(stripped.partition("#")[0].strip().strip("[]")) + "."
        else:
            key = table + _toml_key(stripped.partition("=")[0])
            if "=" in stripped and (key == path or path.startswith(f"{key}.")):
                return number
    return 1


def _toml_key(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))


def _line_in_json(text: str, path: str) -> int:
    """The line with the key that has this path; 1 if there is none."""
    keys: list[str] = []  # of the objects that are open
    for found in _JSON_KEY_OR_BRACE.finditer(text):
        if found[0] == "{":
            keys.append("")
        elif found[0] == "}":
            keys = keys[:-1]
        elif keys and found["is_key"]:
            keys[-1] = found["name"]
            if ".".join(keys) == path:
                return text.count("\n", 0, found.start()) + 1
    return 1
