"""The manual page of the command, ``man bertkit``, in roff. It is made from the options of the verbs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from bertkit._version import __version__
from bertkit.cli.commands import list_switches
from bertkit.options.command import spell_option, spell_usage
from bertkit.options.description import Option, describe, format_type, list_options
from bertkit.options.verbs import HEADINGS, VERBS

_EXIT_CODES = {
    "0": "Done.",
    "1": "The job failed.",
    "2": "Wrong usage: an option, a setting, or a path that is wrong.",
    "3": "Bad data: a file or a model that cannot be read as it is.",
    "130, 143, 129": "Stopped by Ctrl-C, SIGTERM or a closed terminal.",
}
_VARIABLES = {
    "BERTKIT_DATA": "The folder with the data of the tasks that are known by name.",
    "BERTKIT_DEVICE": "Where models run, if --device is not given: auto, cpu or cuda.",
    "BERTKIT_TRUST": "Packages or modules of your own, with commas, from which files may import tasks and encoders.",
}


def make_man_page(functions: Mapping[str, Callable[..., None]]) -> str:
    """The page; ``functions`` are those of the command line, by their verbs."""
    return "\n".join(_lines(functions)) + "\n"


def _lines(functions: Mapping[str, Callable[..., None]]) -> Iterator[str]:
    yield f'.TH BERTKIT 1 "" "bertkit {__version__}" "User Commands"'
    yield from (".SH NAME", r"bertkit \- train, fine\-tune, use and serve BERT: from raw text to predictions")
    yield from (".SH SYNOPSIS", ".B bertkit", r"\fIVERB\fR [\fIARGUMENTS\fR] [\fIOPTIONS\fR]")
    yield from (".SH DESCRIPTION", "Results go to stdout, everything else to stderr. Every verb is also a function of")
    yield r"Python, with the same options. Interrupted jobs continue with the same command, or with \-\-resume."
    for heading, verbs in HEADINGS.items():
        yield f'.SH "{heading.upper()}"'
        for verb in verbs:
            yield from _describe_verb(verb, functions[verb])
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES.items():
        yield from _item(code, meaning)
    yield ".SH ENVIRONMENT"
    for name, meaning in _VARIABLES.items():
        yield from _item(name, meaning)


def _describe_verb(verb: str, function: Callable[..., None]) -> Iterator[str]:
    yield from (f'.SS "{verb}"', f".B {_escape(spell_usage(verb))}", ".PP", _escape(describe(VERBS[verb])))
    for option in list_options(VERBS[verb]):
        yield from _item(_spell(option), f"{option.help}{_default(option)}")
    for name, help in list_switches(function).items():
        yield from _item(f"--{name}", help)


def _spell(option: Option) -> str:
    if option.positional:
        return option.name.upper()
    spelled = spell_option(option.name)
    if option.type is bool:
        return spelled
    choices = re.findall(r"'(.+?)'", format_type(option.type))
    return f"{spelled} {'|'.join(choices) or option.name.rstrip('_').upper()}"


def _default(option: Option) -> str:
    """The default, unless it is none, or the help has it."""
    if option.required or option.stated_default or option.default in (None, (), False):
        return ""
    return f" [default: {option.default}]"


def _item(name: str, meaning: str) -> Iterator[str]:
    yield from (".TP", f".B {_escape(name)}", _escape(meaning))


def _escape(text: str) -> str:
    """Text in one paragraph whose characters are no commands of roff."""
    escaped = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
