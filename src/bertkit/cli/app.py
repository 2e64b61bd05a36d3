"""The verbs put together into one command. The only file that knows cyclopts: the verbs are plain functions.

Imports inside functions are allowed in ``cli`` and nowhere else: ``bertkit pretrain --help`` and a misspelt option
must not wait for PyTorch, so each verb imports ``bertkit.api`` when it runs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError
from cyclopts.field_info import FieldInfo

from bertkit._version import __version__
from bertkit.cli import glue, reproduction, squad, text, training
from bertkit.cli import inference as using
from bertkit.cli.errors import explain
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import usage_error
from bertkit.report.progress import printable


def _short_name(field: FieldInfo, taken: frozenset[str]) -> str | None:
    return "-o" if field.name == "output" else None


def _default(value: object) -> str | None:
    """What the help says about a default; that a flag is off and a list is empty goes without saying."""
    return None if value in (None, False, ()) else str(value)


def _build() -> App:
    defaults = Parameter(consume_multiple=True, negative=(), short_alias=_short_name, show_default=_default)
    any_text = Parameter(allow_leading_hyphen=True)  # a text may begin with a dash, and - is stdin or stdout
    app = App(
        name="bertkit",
        version=f"bertkit {__version__}",
        help="BERT as real software. Raw text to a pre-trained, fine-tuned and usable model.",
        help_epilogue="--debug, anywhere on the line, shows where an error arose.",
        default_parameter=defaults,
    )
    for options in (
        Verbosity,
        text.VocabularyOptions,
        text.PrepareOptions,
        training.PretrainOptions,
        training.FinetuneOptions,
        training.TuneOptions,
        reproduction.ReproduceOptions,
    ):
        Parameter(name="*")(options)  # its fields are options of the verb itself, without a prefix
    app.command(training.quickstart)
    app.command(using.doctor)
    app.command(corpus := App(name="corpus", help="Look at text files before they are prepared."))
    corpus.command(text.corpus_check, name="check")
    app.command(tokenizer := App(name="tokenizer", help="Learn a vocabulary, look at one."))
    tokenizer.command(text.tokenizer_train, name="train")
    tokenizer.command(text.tokenizer_show, name="show", default_parameter=any_text)
    app.command(text.prepare)
    app.command(training.pretrain)
    app.command(using.fill, default_parameter=any_text)
    app.command(training.finetune)
    app.command(training.tune)
    app.command(using.evaluate)
    app.command(using.compare)
    app.command(using.predict, default_parameter=any_text)
    app.command(of_glue := App(name="glue", help="Several runs on the tasks of GLUE together."))
    of_glue.command(glue.glue_table, name="table")
    of_glue.command(glue.glue_submit, name="submit")
    app.command(of_squad := App(name="squad", help="Files of SQuAD and KorQuAD."))
    of_squad.command(squad.squad_score, name="score")
    app.command(reproduction.reproduce)
    app.command(using.track)
    app.command(config := App(name="config", help="The settings of a run."))
    config.command(using.config_show, name="show")
    return app


app = _build()


def run(words: Sequence[str]) -> int:
    """Run one command line; every way of ending is an exit code, every error one line on stderr."""
    debug = "--debug" in words
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # so that my_lab.irony:irony may be a file of the user's
    try:
        _run([word for word in words if word != "--debug"])
    except BaseException as error:
        if debug and not isinstance(error, SystemExit):
            traceback.print_exc()
        message, exit_code = explain(error)
        if message:
            sys.stderr.write(printable(" ".join(message.split())) + "\n")
        return exit_code
    return 0


def _run(words: Sequence[str]) -> None:
    try:
        app(words, exit_on_error=False, print_error=False, verbose=False, result_action="return_none")
    except UnusedCliTokensError as error:
        raise usage_error(f'unexpected argument "{(error.unused_tokens or [""])[0]}".') from error
    except CycloptsError as error:
        message = str(error)
        raise usage_error(message[:1].lower() + message[1:]) from error
