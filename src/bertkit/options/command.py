"""Verbs as they are typed in a shell."""

from __future__ import annotations

import json
import shlex
import typing
from collections.abc import Iterator, Mapping, Sequence

from bertkit.options.description import Option, list_options
from bertkit.options.job import Options
from bertkit.options.verbs import VERBS


def spell_command(verb: str, options: Options) -> str:
    """The command that runs ``verb`` with ``options``, quoted for a shell; options with their default are left out."""
    words = ["bertkit", *verb.split()]
    for option in list_options(type(options)):
        value = getattr(options, option.name)
        if option.name != "progress" and value != option.default:
            words += _spell(option, value)
    return shlex.join(words)


def spell_verb(name: str) -> str:
    """The verb of the command line for the Python function ``name``; ``import_`` is ``import``, a keyword of Python."""
    return name.rstrip("_").replace("_", " ")


def spell_usage(verb: str) -> str:
    """The command with its required arguments and options, such as ``bertkit fill MODEL TEXT [OPTIONS]``."""
    words = ["bertkit", verb]
    for option in list_options(VERBS[verb]):
        name = option.name.upper()
        if option.positional:
            word = f"{name}..." if typing.get_origin(option.type) is Sequence else name
            words.append(word if option.required else f"[{word}]")
        elif option.required:
            words.append(f"{spell_option(option.name)} {name}")
    return " ".join([*words, "[OPTIONS]"])


def spell_option(name: str) -> str:
    """The option of the command line for a field; ``from_`` is ``--from``, which is a keyword of Python."""
    return "-o" if name == "output" else f"--{name.rstrip('_').replace('_', '-')}"


def _spell(option: Option, value: object) -> Iterator[str]:
    if value is False:
        yield f"{spell_option(option.name)}=false"
        return
    if not option.positional:
        yield spell_option(option.name)
    if isinstance(value, Mapping):
        yield from (f"{name}={_spell_setting(each)}" for name, each in value.items())
    elif isinstance(value, list | tuple):
        yield from map(str, value)
    elif value is not True:
        yield str(value)


def _spell_setting(value: object) -> str:
    """A text or a number as it is, and all else as JSON."""
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_plain else json.dumps(value)
