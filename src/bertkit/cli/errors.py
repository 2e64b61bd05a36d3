"""Every exception becomes one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sysconfig
import traceback
from pathlib import Path

from bertkit.cli.streams import abandon_stdout
from bertkit.errors import BAD_DATA, JOB_FAILED, PIPE_CLOSED, BertkitError

INTERRUPTED = 130

_OWN = f"{Path(__file__).parents[1]}{os.sep}"

_CPU_MEMORY = re.compile(r"DefaultCPUAllocator: .* you tried to allocate ([0-9]+) bytes")
"""PyTorch raises a plain RuntimeError with these words when the memory of the host is exhausted."""

_ONEDNN_MEMORY = re.compile(r"could not (create|execute) a (primitive|memory)")
"""oneDNN, which multiplies matrices on the CPU, says nothing more when an allocation fails."""

_SHOWN = 40
"""Characters of a text that an error shows."""

_LESS_MEMORY = (
    "Close other programs, or take a smaller model. Training needs less with --set micro_batch_size=N, "
    "--set gradient_checkpointing=true or a lower --batch-size."
)


def explain(error: BaseException) -> tuple[str, int]:
    """The line for stderr (empty for none) and the exit code.

    ``Interrupted`` is recognized by its ``exit_code`` and PyTorch's ``OutOfMemoryError`` by its name: importing them
    would import PyTorch.
    """
    match error:
        case BertkitError():
            return f"error: {error}", error.exit_code
        case KeyboardInterrupt() if not hasattr(error, "exit_code"):
            return str(error) or "interrupted", INTERRUPTED
        case SystemExit():
            return "", error.code if isinstance(error.code, int) else JOB_FAILED
        case BrokenPipeError():
            abandon_stdout()
            return "", PIPE_CLOSED
        case MemoryError():
            detail = f": {error}" if str(error) else ""
            return f"error: out of memory{detail}. {_LESS_MEMORY}", JOB_FAILED
        case UnicodeEncodeError(reason="surrogates not allowed"):
            end = error.object[: error.end][-_SHOWN:]
            return f'error: "{end}" ends in an unpaired surrogate, which is not UTF-8. Fix the name or text.', BAD_DATA
        case OSError(errno=errno.ENOMEM):
            return f"error: out of memory. {_LESS_MEMORY}", JOB_FAILED
        case OSError(errno=errno.EMFILE):
            return (
                f"error: {error.filename or 'input or output'}: {error.strerror}. Allow more: ulimit -n 1024",
                JOB_FAILED,
            )
        case OSError():
            return f"error: {error.filename or 'input or output'}: {error.strerror or error}.", JOB_FAILED
    exit_code = getattr(error, "exit_code", None)
    if isinstance(exit_code, int):
        return str(error), exit_code
    if type(error).__name__ == "OutOfMemoryError":
        return f"error: {error} {_LESS_MEMORY}", JOB_FAILED
    if match := _CPU_MEMORY.search(str(error)):
        return f"error: out of memory: {int(match[1]):,} more bytes were needed. {_LESS_MEMORY}", JOB_FAILED
    if _ONEDNN_MEMORY.search(str(error)) or str(error) == "can't start new thread":
        return f"error: out of memory: {error}. {_LESS_MEMORY}", JOB_FAILED
    if isinstance(error, SyntaxError) and error.filename and not error.filename.startswith(_OWN):
        return f"error in {error.filename}:{error.lineno}: {error.msg}.", JOB_FAILED
    if place := _place_outside(error):
        return f"error in {place}: {type(error).__name__}: {error}", JOB_FAILED
    return f"error: {type(error).__name__}: {error} (a bug in bertkit? --debug shows where)", JOB_FAILED


def _place_outside(error: BaseException) -> str:
    """Where code of the user that bertkit called has failed, as file, line and function; empty if it is no such code.

    That is the last frame below one of bertkit that belongs neither to bertkit nor to Python or an installed package.
    """
    place, is_called = "", False
    installed = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(_OWN):
            is_called = True
        elif is_called and Path(frame.filename).is_file() and not frame.filename.startswith(installed):
            place = f"{frame.filename}:{frame.lineno} ({frame.name})"
    return place
