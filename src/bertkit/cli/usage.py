"""Errors in the words of a command line, in terms of the options of its verb."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cyclopts import CycloptsError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError

from bertkit.config.spelling import SYNONYMS
from bertkit.errors import BertkitError, did_you_mean, usage_error
from bertkit.options.command import spell_option
from bertkit.options.description import Option, list_options
from bertkit.options.help import EXAMPLES
from bertkit.options.verbs import VERBS

_OTHER_NAMES = {"model_name_or_path": "model", "output_dir": "output", "train_file": "train", **SYNONYMS}
"""Options of other programs -> those of bertkit."""

_OPTION = re.compile(r"--[a-zA-Z]")


def explain_usage(error: CycloptsError) -> BertkitError:
    """The usage error, in one line, for what cyclopts found wrong with a command line."""
    verb = " ".join(error.command_chain or ())
    options = list_options(VERBS[verb]) if verb in VERBS else ()
    match error:
        case UnusedCliTokensError() if unknown := _unknown_option(error):
            return usage_error(unknown)
        case UnusedCliTokensError():
            return usage_error(f'unexpected argument "{(error.unused_tokens or [""])[0]}".')
        case MissingArgumentError() if option := _find(options, error):
            if near := _misspelled(option, error, options):
                return usage_error(f"unknown option: {near}. Did you mean {spell_option(option.name)}?")
            was_typed = error.keyword is not None or bool(error.argument and error.argument.tokens)
            return usage_error(explain_missing(verb, option, was_typed=was_typed))
        case UnknownOptionError() if near := _known_elsewhere(error, options):
            return usage_error(f"unknown option: {error.token.keyword or error.token.value}. Did you mean {near}?")
    message = str(error)
    return usage_error(message[:1].lower() + message[1:])


def _unknown_option(error: UnusedCliTokensError) -> str:
    """The sentence about the first word that is spelled like an option and is none; empty without one.

    Where a text may begin with a dash, such a word is taken for an argument, and a right one is left over.
    """
    arguments = error.app.assemble_argument_collection() if error.app else ()
    known = {name for argument in arguments for name in argument.names}
    word = next((each for each in _typed_options(error) if each not in known), None)
    return f"unknown option: {word}.{did_you_mean(word, known, quoted=False)}" if word else ""


def _typed_options(error: CycloptsError) -> list[str]:
    """The words of the command line that are spelled like options, without the values after ``=``."""
    return [word.partition("=")[0] for word in error.root_input_tokens or () if _OPTION.match(word)]


def _find(options: Sequence[Option], error: MissingArgumentError) -> Option | None:
    """The option that lacks a value."""
    names = error.argument.names if error.argument else ()
    return next((each for each in options if {spell_option(each.name), each.name.upper()} & set(names)), None)


def _misspelled(option: Option, error: MissingArgumentError, options: Sequence[Option]) -> str:
    """What was typed and is no option, but spelled like this one; empty if there is nothing."""
    known = {spell_option(each.name) for each in options}
    typed = _typed_options(error)
    return next((each for each in typed if each not in known and did_you_mean(each, [spell_option(option.name)])), "")


def explain_missing(verb: str, option: Option, *, was_typed: bool = False) -> str:
    """What the option is for, and an example; if its name ``was_typed``, that its value is missing."""
    meaning = option.meaning.partition(". ")[0].rstrip(".")
    meaning = meaning if meaning[1:2].isupper() else meaning[:1].lower() + meaning[1:]
    if not option.required or was_typed:
        return f"{spell_option(option.name)} needs a value: {meaning}."
    spelled = option.name.upper() if option.positional else f"{spell_option(option.name)} {option.name.upper()}"
    return f"{verb} needs {spelled}, {meaning}. Example: {EXAMPLES[verb]}"


def _known_elsewhere(error: UnknownOptionError, options: Sequence[Option]) -> str:
    """The option that other programs call so; empty if there is none."""
    typed = (error.token.keyword or error.token.value).lstrip("-").replace("-", "_").partition("=")[0]
    name = _OTHER_NAMES.get(typed)
    return next((spell_option(each.name) for each in options if each.name == name), "")
