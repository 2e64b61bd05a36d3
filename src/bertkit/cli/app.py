"""The verbs as a shell sees them: parse, call the function of the same name in ``bertkit.api``, show what it returns.

The only file that knows cyclopts. Imports inside functions are allowed here and nowhere else: ``bertkit pretrain
--help`` and a misspelt option must not wait for PyTorch.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from bertkit._version import __version__
from bertkit.cli.endings import explain
from bertkit.cli.show import show_json, show_lines, show_table, spell
from bertkit.errors import usage_error
from bertkit.report.progress import Mode, Progress

app = App(
    name="bertkit",
    version=f"bertkit {__version__}",
    help="BERT as real software. Raw text to a pre-trained, fine-tuned and usable model.",
    default_parameter=Parameter(negative=(), show_default=True),
    help_epilogue="--debug, anywhere on the line, shows where an error arose.",
)
corpus = App(name="corpus", help="Text files before they are prepared.")
tokenizer_app = App(name="tokenizer", help="Vocabularies: learn one, look at one.")
config_app = App(name="config", help="The settings of a run.")
for verbs in (corpus, tokenizer_app, config_app):
    app.command(verbs)

Output = Annotated[Path, Parameter(["--output", "-o"])]
AsJson = Annotated[bool, Parameter("--json", help="Show the result as JSON.")]
Many = Parameter(consume_multiple=True)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Talk:
    """What a job says on stderr while it runs."""

    progress: Mode = "auto"
    """A bar on a terminal and plain lines elsewhere (auto), plain lines, JSON lines, or nothing."""
    quiet: bool = False
    """The same as --progress quiet."""

    @property
    def mode(self) -> Mode:
        """What the two options come to."""
        return "quiet" if self.quiet else self.progress

    def next(self, *words: object) -> None:
        """The last line of a job: what to type next."""
        Progress(self.mode).say(f"next: {spell(*words)}")


def run(words: Sequence[str]) -> int:
    """Run one command line; every way of ending is an exit code, every error one line on stderr."""
    debug = "--debug" in words
    try:
        _run([word for word in words if word != "--debug"])
    except BaseException as error:
        if debug and not isinstance(error, SystemExit):
            traceback.print_exc()
        message, exit_code = explain(error)
        if message:
            sys.stderr.write(" ".join(message.split()) + "\n")
        return exit_code
    return 0


def _run(words: Sequence[str]) -> None:
    try:
        app(words, exit_on_error=False, print_error=False, verbose=False, result_action="return_none")
    except UnusedCliTokensError as error:
        raise usage_error(f'unexpected argument "{(error.unused_tokens or [""])[0]}".') from error
    except CycloptsError as error:
        text = str(error)
        raise usage_error(text[:1].lower() + text[1:]) from error


@app.command
def quickstart(*, output: Output = Path("quickstart"), minutes: float = 10, talk: Talk | None = None) -> None:
    """Raw text to a fine-tuned model, with no input at all and no network.

    The text is the documentation of the Python packages on this machine.

    Parameters
    ----------
    output:
        Folder for everything that is made.
    minutes:
        How long it may take; more minutes train a larger model for longer.
    """
    from bertkit import api

    talk = talk or Talk()
    result = api.quickstart(output, minutes=minutes, progress=talk.mode)
    show_lines(result.lines())
    talk.next("bertkit", "fill", result.model, "The [MASK] of the array.")


@app.command
def doctor(*, json: AsJson = False) -> None:
    """Device, precision, threads, memory and what is installed."""
    from bertkit import api

    result = api.doctor()
    show_json(result) if json else show_lines(result.lines())


@corpus.command(name="check")
def corpus_check(*files: Path, json: AsJson = False) -> None:
    """Encodings, documents, duplicates and lengths of text files (.txt .jsonl .parquet, plain, .gz or .zst)."""
    from bertkit import api

    result = api.corpus_check(files)
    show_json(result) if json else show_lines(result.lines())


@tokenizer_app.command(name="train")
def tokenizer_train(
    *files: Path,
    output: Output,
    vocab_size: int = 30_000,
    cased: bool = False,
    strip_accents: bool | None = None,
    unicode_form: Literal["NFD", "NFC"] | None = None,
    talk: Talk | None = None,
) -> None:
    """Learn a WordPiece vocabulary from text files.

    Parameters
    ----------
    output:
        Folder for tokenizer.json, tokenizer_config.json and vocab.txt.
    vocab_size:
        Pieces, special ones included; fewer when the text has no more.
    cased:
        Keep upper case and accents.
    strip_accents:
        Take accents off (--strip-accents) or leave them on (--no-strip-accents); off unless --cased.
    unicode_form:
        NFC keeps Hangul syllables whole, NFD takes characters apart as the original BERT does.
    """
    from bertkit import api

    talk = talk or Talk()
    trained = api.tokenizer_train(
        files,
        output=output,
        vocab_size=vocab_size,
        cased=cased,
        strip_accents=strip_accents,
        unicode_form=unicode_form,
        progress=talk.mode,
    )
    show_lines([f"{output}: {trained.vocab_size:,} pieces"])
    talk.next("bertkit", "prepare", *files, "--tokenizer", output, "-o", "DATA")


@tokenizer_app.command(name="show")
def tokenizer_show(tokenizer: str, text: str, /, *, json: AsJson = False) -> None:
    """How a text is cut: pieces, their ids, and the characters that they stand for."""
    from bertkit import api

    pieces = api.tokenizer_show(tokenizer, text)
    if json:
        show_json(pieces)
    else:
        rows = [
            (piece.piece, piece.id, f"{piece.start}-{piece.end}", text[piece.start : piece.end]) for piece in pieces
        ]
        show_table(("piece", "id", "characters", "text"), rows)
