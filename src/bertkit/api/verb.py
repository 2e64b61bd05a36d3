"""A verb as a Python function: its parameters, their types and their documentation come from its record of options."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import ParamSpec, TypeVar

from bertkit.api.tables import tables_as_files
from bertkit.errors import BertkitError, did_you_mean, usage_error
from bertkit.formats.memory_tables import is_memory_table
from bertkit.inference.texts import describe_value
from bertkit.machine.device import use_device
from bertkit.options.command import spell_option
from bertkit.options.description import Option, describe, format_type, list_options
from bertkit.options.inputs import DataTable, LoadedModel, check_inputs, kinds_of_inputs
from bertkit.options.job import Options
from bertkit.ranges import is_union

P = ParamSpec("P")
SomeOptions = TypeVar("SomeOptions", bound=Options)
Result = TypeVar("Result")

_WIDTH = 100


def verb(record: Callable[P, SomeOptions]) -> Callable[[Callable[[SomeOptions], Result]], Callable[P, Result]]:
    """Turn a function of one record of options into a function with one parameter per field of the record.

    The docstring of the decorated function says what it returns; the rest of the documentation is in the record.
    """
    kind = typing.cast("type[Options]", record)
    options, description = list_options(kind), describe(kind)

    def decorate(function: Callable[[SomeOptions], Result]) -> Callable[P, Result]:
        def call(*arguments: P.args, **named: P.kwargs) -> Result:
            _refuse_unknown(signature, named, f"bertkit.{function.__name__}")
            try:
                given = signature.bind(*arguments, **named).arguments
            except TypeError as error:
                raise TypeError(f"bertkit.{function.__name__}: {error}") from None
            _refuse_single_texts(options, given)
            _refuse_empty(options, given, paths=kinds_of_inputs(typing.cast(typing.Any, kind)))
            _refuse_other_types(options, given)
            try:
                with tables_as_files(record(*arguments, **named)) as checked:
                    check_inputs(checked)
                    with use_device(getattr(checked, "device", "auto")):
                        return function(checked)
            except BertkitError as error:
                _note_parameters(error, options)
                raise

        result = typing.get_type_hints(function)["return"]
        signature = Signature([_parameter(each) for each in options], return_annotation=result)
        for attribute in ("__module__", "__name__", "__qualname__"):
            setattr(call, attribute, getattr(function, attribute))
        call.__annotations__ = {option.name: option.type for option in options} | {"return": result}
        call.__doc__ = "\n".join(_document(description, options, inspect.cleandoc(function.__doc__ or "")))
        call.__dict__["__signature__"] = signature
        return call

    return decorate


def _refuse_unknown(signature: Signature, named: Iterable[str], verb: str) -> None:
    """Raise a TypeError for a name that is no parameter, with the one that may be meant."""
    for name in named:
        if name not in signature.parameters:
            hint = did_you_mean(name, signature.parameters)
            raise TypeError(f"{verb}: got an unexpected keyword argument '{name}'.{hint}")


def _note_parameters(error: BertkitError, options: Sequence[Option]) -> None:
    """Add a note, which a traceback shows, for a message that spells options as a shell does: ``--label`` is label=."""
    message = re.split(r"\bbertkit [a-z]", str(error))[0]  # in a command they stay
    names = [each.name for each in options if re.search(rf"(?<![\w-]){spell_option(each.name)}(?![\w-])", message)]
    if names:
        error.add_note(f"in Python: {', '.join(f'{name}=' for name in names)}")


def _refuse_single_texts(options: Sequence[Option], arguments: Mapping[str, object]) -> None:
    """Raise a usage error for a string, a table or a set where a list is expected: it would be read letter by letter,
    by the names of its columns, or in an order that changes from one process to the next."""
    for option in options:
        value = arguments.get(option.name)
        kinds = _kinds(option.type)
        is_list = str not in kinds and any(typing.get_origin(kind) is Sequence for kind in kinds)
        if is_list and is_memory_table(value):
            if not _fits([value], option.type):
                raise usage_error(f"{option.name} is a table, and must be a list of files: write it into a file first.")
            raise usage_error(f"{option.name} is one table, and must be a list of tables: put it in brackets.")
        if is_list and isinstance(value, set | frozenset):
            raise usage_error(f"{option.name} is a set, which has no order, and must be a list.")
        if is_list and isinstance(value, str | Path):
            raise usage_error(f'{option.name} is "{value}", and must be a list: ["{value}"].')


def _kinds(hint: object) -> tuple[object, ...]:
    """The types of a union, or the one type."""
    return typing.get_args(hint) if is_union(hint) else (hint,)


def _refuse_empty(options: Sequence[Option], arguments: Mapping[str, object], *, paths: Collection[str]) -> None:
    """Raise a usage error for a required list without items, and for an option that is an empty string: such a path
    would be the working folder, and such a name would count as not given. ``paths`` are the options that name files."""
    for option in options:
        value = arguments.get(option.name)
        items = value if isinstance(value, list | tuple) else None
        if option.required and items is not None and not items:
            raise usage_error(f"{option.name} is empty: give at least one.")
        if option.name in paths and any(isinstance(each, str) and not each for each in items or ()):
            raise usage_error(f"{option.name} has an empty path: leave it out.")
        if (not option.positional or option.name in paths) and isinstance(value, str) and not value:
            raise usage_error(f"{option.name} is empty: give a value, or leave it out.")


def _refuse_other_types(options: Sequence[Option], arguments: Mapping[str, object]) -> None:
    """Raise a usage error for a value of another type than that of its option; numbers are checked with their range."""
    for option in options:
        if option.name in arguments and option.range is None and not _fits(arguments[option.name], option.type):
            expected = format_type(option.type).replace("DataTable", "DataFrame | Dataset").replace(" | ", " or ")
            raise usage_error(f"{option.name} is {describe_value(arguments[option.name])}; it must be {expected}.")


def _fits(value: object, hint: object) -> bool:
    """Whether a value may be of this type."""
    if len(kinds := _kinds(hint)) > 1:
        return any(_fits(value, each) for each in kinds)
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if origin is Mapping:
        return isinstance(value, Mapping)
    if origin is Sequence:
        (item,) = typing.get_args(hint)
        return isinstance(value, Iterable) and all(_fits(each, item) for each in _kept_items(value))
    if hint is DataTable:
        return is_memory_table(value)
    if hint is LoadedModel:
        return isinstance(value, LoadedModel)
    if hint is Path:
        return isinstance(value, os.PathLike)
    return not isinstance(hint, type) or hint not in (str, bool, type(None)) or isinstance(value, hint)


def _kept_items(value: Iterable[object]) -> Iterable[object]:
    """The items, without those of an iterator, which can be read only once."""
    return () if isinstance(value, Iterator) else value


def _parameter(option: Option) -> Parameter:
    kind = Parameter.POSITIONAL_OR_KEYWORD if option.positional else Parameter.KEYWORD_ONLY
    default = Parameter.empty if option.required else option.default
    return Parameter(option.name, kind, default=default, annotation=option.type)


def _document(description: str, options: Sequence[Option], result: str) -> Iterator[str]:
    """The lines of a docstring: what the verb does, its parameters and what it returns."""
    yield description
    if options:
        yield from ("", "Parameters", "----------")
    for option in options:
        shown = "" if option.required or option.default in (None, ()) else f", default {option.default!r}"
        yield f"{option.name} : {format_type(option.type)}{shown}"
        yield textwrap.indent(textwrap.fill(option.help, _WIDTH), "    ")
    yield from ("", "Returns", "-------", result)
