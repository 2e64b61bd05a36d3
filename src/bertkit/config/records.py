"""Records, which are frozen dataclasses, as plain values for JSON, and read from them again.

An unknown key is an error with the nearest spelling; nothing is ignored.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bertkit.config.fields import decode, field_paths, field_types, find_record, without_annotations
from bertkit.config.spelling import explain_unknown
from bertkit.errors import BertkitError, data_error
from bertkit.ranges import is_union
from bertkit.scores import UNDEFINED, UNDEFINED_IS_NULL

Record = TypeVar("Record")


def to_plain(record: object) -> Any:
    """A record as plain JSON: dictionaries, lists, text, finite numbers, booleans and None, which NaN becomes."""
    return _finite(msgspec.to_builtins(record, str_keys=True, enc_hook=_encode))


def from_plain(kind: type[Record], value: object, *, source: str = "the record") -> Record:
    """The record of type ``kind`` from the ``value`` that ``to_plain`` made of it; ``source`` names it in errors."""
    for path in _unknown_keys(kind, value):
        raise data_error(f"{source}: {explain_unknown(path, field_paths(kind))}")
    try:
        return msgspec.convert(_restore_undefined(kind, value), kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        reason = error.__cause__ if isinstance(error.__cause__, BertkitError) else error  # it adds a path to a sentence
        raise data_error(f"{source}: {str(reason).rstrip('.')}.") from error


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


def _restore_undefined(hint: object, value: Any) -> Any:
    """``value`` with NaN in place of each null whose type is ``Score``: JSON has no NaN."""
    if value is None and UNDEFINED_IS_NULL in getattr(hint, "__metadata__", ()):
        return UNDEFINED
    hint = without_annotations(hint)
    record = find_record(hint)
    if isinstance(value, dict) and record:
        hints = field_types(record)
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
    hint = without_annotations(hint)
    if record := find_record(hint):
        hints = field_types(record)
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
