"""The entry point of the command: answers ``--help`` and ``--version`` with the standard library alone.

Everything else goes to ``bertkit.cli.app``. An error there ends as one line on stderr and one of these exit codes:
0 done, 1 the job failed, 2 wrong usage, 3 bad data, 130 interrupted and resumable, 143 after SIGTERM.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from bertkit._version import __version__
from bertkit.cli.streams import abandon_stdout
from bertkit.errors import JOB_FAILED, PIPE_CLOSED, WRONG_USAGE
from bertkit.options.description import summarize
from bertkit.options.verbs import HEADINGS

_HELP = """\
bertkit trains, fine-tunes and uses BERT: from raw text to predictions.

usage: bertkit VERB ARGUMENTS [OPTIONS]       bertkit VERB --help shows the options of a verb

{verbs}bertkit completion bash|zsh|fish prints what a shell needs to complete these words
options of every verb: --help, --debug (show where an error arose)
options of every job: --quiet, --progress auto|plain|json|quiet
results go to stdout, everything else to stderr; --json makes results readable for machines
"""

_IMPATIENT = {"bench"}
"""The verbs that measure one text at a time: a thread that has to be woken up makes it a sixth slower."""


class _ClosedStream(io.TextIOBase):
    """Stands in for a stream that the caller has closed: nothing can be written to it."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def _list_verbs() -> Iterator[str]:
    for heading, verbs in HEADINGS.items():
        yield f"  {heading}\n"
        yield from (f"    {verb:18}{_as_phrase(summarize(record))}\n" for verb, record in verbs.items())
        yield "\n"


def _as_phrase(sentence: str) -> str:
    """The first sentence, without its full stop, on one line."""
    first = " ".join(sentence.split()).partition(". ")[0]
    return first[:1].lower() + first[1:].rstrip(".")


HELP = _HELP.format(verbs="".join(_list_verbs()))


def main() -> int:
    """Run the command that ``sys.argv`` spells, and return its exit code."""
    words = sys.argv[1:]
    _prepare_streams()
    if words in ([], ["--help"], ["-h"], ["help"]):
        return _answer(HELP)
    if words in (["--version"], ["-V"]):
        return _answer(f"bertkit {__version__}\n")
    if not _has_working_folder():  # some libraries fail when they are imported in one that is gone
        sys.stderr.write("error: the working folder no longer exists. Change to another one.\n")
        return WRONG_USAGE
    signals = Signals()
    if next((word for word in words if word != "--debug"), "") not in _IMPATIENT:
        _let_waiting_threads_sleep()
    try:
        from bertkit.cli.app import run

        return run(words, lambda: signals.raised)
    except BaseException:  # while the libraries are being imported
        if signals.raised is None:
            raise
        from bertkit.cli.errors import explain

        return explain(signals.raised)[1]
    finally:
        gc.freeze()  # the interpreter would look for garbage among PyTorch's objects before it exits: 0.3 s


def _has_working_folder() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109  (pathlib is not imported yet)
    except FileNotFoundError:
        return False


def _prepare_streams() -> None:
    """Let the streams show any text, and give a closed one something to write to: a job without stderr has results.

    What a file or another program receives is UTF-8, whatever the locale: it is data, as in any file that is written.
    """
    sys.stdout = sys.stdout or _ClosedStream()
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = "utf-8" if stream is sys.stdout and not stream.isatty() else None
            # This terminal may be unable to show a file name or a token.
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _let_waiting_threads_sleep() -> None:
    """Let PyTorch's threads sleep soon after they begin to wait for each other, unless the user has said how they wait.

    By default they look 300,000 times first, and one busy program beside them halves the steps of a training, because
    the thread that is waited for does not get the core: 47 steps in 30 seconds, 90 with 1,000 looks, and as many as
    before on an idle machine (docs/decisions.md). GNU's OpenMP reads the variable when PyTorch is imported.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "1000"


def _answer(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        return PIPE_CLOSED
    except OSError as error:
        sys.stderr.write(f"error: cannot write to stdout: {error.strerror}.\n")
        abandon_stdout()
        return JOB_FAILED
    return 0


class Signals:
    """Ends the command on Ctrl-C, SIGTERM and SIGHUP through every ``finally``, so that no half-written file remains.

    A signal that the process ignores from its start, such as SIGHUP under nohup, stays ignored. ``raised`` is the
    exception of the last one, which a library may hide: PyTorch makes a ValueError of any error that occurs while it
    asks for the length of a sequence.
    """

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._end)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.raised = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        raise self.raised
