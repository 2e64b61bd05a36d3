"""Verbs as commands: the parameters of a command, their defaults and their help come from the verb's options."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Literal

import cyclopts

from bertkit.cli.usage import explain_missing
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import SAME_COMMAND, did_you_mean, usage_error
from bertkit.options.command import spell_command, spell_verb
from bertkit.options.description import Option, describe, list_options
from bertkit.options.help import GROUPS, group_of, group_of_switch
from bertkit.options.inputs import STREAM, check_inputs
from bertkit.options.job import JobOptions, Options
from bertkit.ranges import is_union

SWITCHES = {
    "json": "Show the result as JSON.",
    "origin": "Show where each value came from: the default, a line of a file, or the command line.",
    "quiet": "Show nothing on stderr but errors.",
}
"""The help of the options that only the command line has."""

_PANELS = {name: cyclopts.Group(name, sort_key=place) for place, name in enumerate(GROUPS)}
"""The panels of the help, one for each group of options."""


def make_command(verb: Callable[..., None]) -> Callable[..., None]:
    """A function with one parameter per option of ``verb``, as cyclopts wants it.

    ``verb`` has the parameter ``options``, a record, and may have ``verbosity`` and the switches of the command line.
    """
    record: type[Options] = typing.get_type_hints(verb)["options"]
    asked, shown = [name for name in inspect.signature(verb).parameters if name != "options"], own_parameters(verb)
    options = [option for option in list_options(record) if option.name != "progress"]
    has_labels = any(option.name == "label" for option in options)
    panels = [_PANELS[group_of(option, has_labels=has_labels)] for option in options]
    signature = Signature([*map(_parameter, options, panels), *map(_own_parameter, shown)])

    def command(*arguments: object, **named: object) -> None:
        values = signature.bind(*arguments, **named)
        values.apply_defaults()
        given = {option.name: values.arguments[option.name] for option in options}
        if missing := next((each for each in options if each.required and given[each.name] == ()), None):
            raise usage_error(explain_missing(spell_verb(verb.__name__), missing))  # cyclopts takes an empty list
        if issubclass(record, JobOptions):
            given["progress"] = values.arguments["verbosity"].mode
        checked = record(**given)
        check_inputs(checked)  # before the verb imports PyTorch
        try:
            verb(checked, **{name: values.arguments[name] for name in asked})
        except KeyboardInterrupt as stop:
            if record.CONTINUES and not _has_stream(given.values()):
                stop.args = (_add_command(str(stop), spell_command(spell_verb(verb.__name__), checked)),)
            raise

    command.__name__ = verb.__name__
    command.__doc__ = _as_plain_text(describe(record))
    command.__annotations__ = {}
    command.__dict__["__signature__"] = signature
    return command


def own_parameters(verb: Callable[..., None]) -> list[str]:
    """The parameters that only the command line has: those that ``verb`` asks for, and ``verbosity`` for every job."""
    asked = [name for name in inspect.signature(verb).parameters if name != "options"]
    is_job = issubclass(typing.get_type_hints(verb)["options"], JobOptions)
    return [*asked, "verbosity"] if is_job and "verbosity" not in asked else asked


def list_switches(verb: Callable[..., None]) -> dict[str, str]:
    """The options of ``verb`` that only the command line has, with their help."""
    taken = ["quiet" if name == "verbosity" else name for name in own_parameters(verb)]
    return {name: SWITCHES[name] for name in taken if name in SWITCHES}


def _has_stream(values: Iterable[object]) -> bool:
    """Whether an input or the output is a stream, of which the next start would not have the beginning."""
    several = (value if isinstance(value, list | tuple) else [value] for value in values)
    return any(str(each) == str(STREAM) for value in several for each in value)


def _add_command(stopped: str, command: str) -> str:
    """What an interrupted job says, with the command that continues it."""
    said = stopped.removesuffix(SAME_COMMAND).strip() or "interrupted."
    return f"{said} {SAME_COMMAND.removesuffix('.')}: {command}"


def _as_plain_text(description: str) -> str:
    """Each paragraph as one line, which the help breaks to the width of the terminal, and no marks around code."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in description.split("\n\n"))
    return "\n\n".join(paragraphs).replace("``", "")


def _own_parameter(name: str) -> Parameter:
    """A parameter that only the command line has."""
    if name == "verbosity":
        return Parameter(name, Parameter.KEYWORD_ONLY, default=Verbosity(), annotation=Verbosity)
    hint = Annotated[bool, cyclopts.Parameter(help=SWITCHES[name], group=_PANELS[group_of_switch(name)])]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=hint)


def _parameter(option: Option, panel: cyclopts.Group) -> Parameter:
    hint = _typed_as_text(option.type)
    several = typing.get_origin(hint) is list
    # Where a text may begin with a dash, a list would take the option after it as one more of its values.
    no_dash = (
        cyclopts.Parameter(allow_leading_hyphen=False) if several and not option.positional else cyclopts.Parameter()
    )
    converter = _find_converter(typing.get_args(hint)[0] if option.positional and several else hint)
    help = cyclopts.Parameter(help=option.help, converter=converter)
    help = help if option.positional else cyclopts.Parameter.combine(help, cyclopts.Parameter(group=panel))
    if option.positional and several:
        return Parameter(option.name, Parameter.VAR_POSITIONAL, annotation=Annotated[typing.get_args(hint)[0], help])
    kind = Parameter.POSITIONAL_ONLY if option.positional else Parameter.KEYWORD_ONLY
    default = Parameter.empty if option.required else option.default
    return Parameter(option.name, kind, default=default, annotation=Annotated[hint, help, no_dash])


def _find_converter(hint: typing.Any) -> Callable[[typing.Any, Sequence[cyclopts.Token]], object] | None:
    """What reads the words after an option, where cyclopts would not do."""
    if typing.get_args(hint)[:1] == (int,) or hint is int:
        return _read_whole_number
    if Path in (hint, *typing.get_args(hint)):
        return _read_path if typing.get_origin(hint) is not list else _read_paths
    several = typing.get_origin(hint) is list
    return _read_names if several and typing.get_origin(typing.get_args(hint)[0]) is Literal else None


def _read_names(kind: typing.Any, tokens: Sequence[cyclopts.Token]) -> list[str]:
    """Names of a known set, with spaces or commas between them."""
    known = typing.get_args(typing.get_args(kind)[0])
    names = [name for token in tokens for name in token.value.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        listed = ", ".join(f'"{name}"' for name in known)
        raise ValueError(f'"{unknown[0]}". Choose from: {listed}.{did_you_mean(unknown[0], known)}')
    return names


def _read_path(kind: typing.Any, tokens: Sequence[cyclopts.Token]) -> Path:
    """The path in ``tokens``. An empty one, such as an unset variable of the shell, would be the working folder."""
    if not tokens[0].value:
        raise ValueError("a path is empty: give one, or leave it out.")
    return Path(tokens[0].value)


def _read_paths(kind: typing.Any, tokens: Sequence[cyclopts.Token]) -> list[Path]:
    return [_read_path(kind, [token]) for token in tokens]


def _read_whole_number(kind: type, tokens: Sequence[cyclopts.Token]) -> int:
    """The number in ``tokens``; cyclopts would round 1.5."""
    try:
        return int(tokens[0].value)
    except ValueError as error:
        raise ValueError(f'"{tokens[0].value}" is not a whole number.') from error


def _typed_as_text(hint: typing.Any) -> typing.Any:
    """The type of an option on the command line: of alternatives the first, as text stands for all of them."""
    if is_union(hint):
        first, *others = typing.get_args(hint)
        return _typed_as_text(first) | None if types.NoneType in others else _typed_as_text(first)
    if typing.get_origin(hint) is collections.abc.Sequence:
        return list[_typed_as_text(typing.get_args(hint)[0])]  # type: ignore[misc]
    return hint
