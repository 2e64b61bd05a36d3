"""All verbs put together into one command.

Imports inside functions are allowed in ``cli`` and nowhere else: ``bertkit pretrain --help`` and a misspelt option
must not wait for PyTorch. The verbs of ``bertkit`` itself are imported when they are used.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.field_info import FieldInfo

from bertkit._version import __version__
from bertkit.cli import (
    benchmarks,
    embedding,
    evaluation,
    exchange,
    explanation,
    finetuning,
    inference,
    pretraining,
    records,
    reproduction,
    serving,
    speed,
    start,
    text,
)
from bertkit.cli.commands import make_command
from bertkit.cli.errors import explain
from bertkit.cli.streams import abandon_stdout
from bertkit.cli.usage import explain_usage
from bertkit.errors import BertkitError, usage_error
from bertkit.escaping import printable
from bertkit.options.command import spell_usage, spell_verb
from bertkit.options.help import EXAMPLES
from bertkit.options.verbs import VERBS

_MODULES = (
    benchmarks,
    embedding,
    evaluation,
    exchange,
    explanation,
    finetuning,
    inference,
    pretraining,
    records,
    reproduction,
    serving,
    speed,
    start,
    text,
)


def _find_functions() -> dict[str, Callable[..., None]]:
    own = [each for module in _MODULES for each in vars(module).values() if _is_defined_in(each, module)]
    functions = {spell_verb(each.__name__): each for each in own}
    return {verb: functions[verb] for verb in VERBS}


def _is_defined_in(value: object, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


VERB_FUNCTIONS: Mapping[str, Callable[..., None]] = _find_functions()
"""The function of every verb: the one of this name in ``_MODULES``."""

_GROUPS = {
    "corpus": "Look at text files before they are prepared.",
    "tokenizer": "Train a tokenizer, look at one, or compare several.",
    "glue": "Put several runs on the tasks of GLUE together.",
    "bench": "Measure the speed of this machine, beside other libraries.",
    "squad": "Work with files of SQuAD and KorQuAD.",
    "config": "Look at the settings of a run.",
}
_ARGUMENTS = Group("Arguments", sort_key=-1)
"""The first panel of the help."""

_WITH_ANY_TEXT = {"tokenizer show", "attention", "explain", "fill", "predict", "embed", "search"}
"""Verbs whose arguments may begin with a dash: a text, or - for stdin and stdout."""


def _short_name(field: FieldInfo, taken: frozenset[str]) -> str | None:
    return "-o" if field.name == "output" else None


def _show_default(value: object) -> str | None:
    """How the help shows a default; that a switch is off or a list is empty is not shown."""
    return None if value in (None, False, ()) else str(value)


def _build() -> App:
    app = App(
        name="bertkit",
        version=f"bertkit {__version__}",
        help="Trains, fine-tunes and uses BERT: from raw text to predictions.",
        help_format="plaintext",  # Markdown would drop <mask> as an HTML tag
        help_epilogue="--debug, anywhere on the line, shows where an error arose.",
        suppress_keyboard_interrupt=False,  # of Interrupted the exit code and the command to continue would be lost
        default_parameter=Parameter(
            consume_multiple=1, negative=(), short_alias=_short_name, show_default=_show_default
        ),
    )
    groups = {name: App(name=name, help=help) for name, help in _GROUPS.items()}
    for each in groups.values():
        app.command(each)
    for verb, function in VERB_FUNCTIONS.items():
        group, _, name = verb.rpartition(" ")
        options = Parameter(allow_leading_hyphen=True) if verb in _WITH_ANY_TEXT else None
        usage = f"Usage: {spell_usage(verb)}\nExample: {EXAMPLES[verb]}\n"
        command = App(name=name, usage=usage, default_parameter=options, group_arguments=_ARGUMENTS)
        command.default(make_command(function))
        (groups[group] if group else app).command(command)
    app["finetune"].command(finetuning.list_tasks, name="--list")
    app.command(completion)
    return app


def completion(shell: Literal["bash", "zsh", "fish"] | None = None, /) -> None:
    """Print the script with which a shell completes the words of bertkit.

    Parameters
    ----------
    shell
        Put it where the shell looks: bertkit completion bash > ~/.local/share/bash-completion/completions/bertkit,
        bertkit completion zsh > ~/.zfunc/_bertkit, bertkit completion fish > ~/.config/fish/completions/bertkit.fish.
    """
    if shell is None:
        raise usage_error("completion needs the name of a shell: bash, zsh or fish.")
    sys.stdout.write(app.generate_completion(shell=shell))


app = _build()


def run(words: Sequence[str], stopped: Callable[[], BaseException | None] = lambda: None) -> int:
    """Run one command line and return its exit code; an error is one line on stderr.

    ``stopped`` gives the exception of a signal that has arrived, whatever a library has made of it.
    """
    debug = "--debug" in words
    try:
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)  # so that my_lab.irony:irony can be a module in the current folder
        _check_encoding(words)
        _run([word for word in words if word != "--debug"])
        _flush_stdout()
    except BaseException as error:
        if debug and not isinstance(error, SystemExit):
            traceback.print_exc()
        message, exit_code = explain(stopped() or error)
        if message:
            sys.stderr.write(printable(" ".join(message.split())) + "\n")
        return exit_code
    return 0


def _check_encoding(words: Sequence[str]) -> None:
    """Refuse a name that is not UTF-8, which neither a record nor the libraries of tokenizers can hold."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise usage_error(f"{word} is not UTF-8. Rename the file or folder, or set LC_ALL=C.UTF-8.") from error


def _flush_stdout() -> None:
    """Write what is buffered now, while an error can still be reported."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_stdout()
        raise BertkitError(f"cannot write to stdout: {error.strerror}.") from error


def _run(words: Sequence[str]) -> None:
    try:
        app(words, exit_on_error=False, print_error=False, verbose=False, result_action="return_none")
    except CycloptsError as error:
        raise explain_usage(error) from error
