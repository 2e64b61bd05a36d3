"""The error that is shown to the user: one line that says where, what is wrong, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

JOB_FAILED = 1
PIPE_CLOSED = 141
"""The reader of stdout has ended, as in ``| head``: 128 + SIGPIPE, as other programs end then."""
WRONG_USAGE = 2
BAD_DATA = 3

SAME_COMMAND = "Continue with the same command."
"""The end of what a job says that was interrupted; on the command line the command follows."""

_SHOWN_NAMES = 40


class BertkitError(ValueError):
    """An error that the user can fix.

    The message is one line. ``exit_code`` is that of the command: 1 the job failed, 2 wrong usage, 3 bad data. Bugs are
    found by ``assert``, never reported as this error.
    """

    def __init__(self, message: str, *, exit_code: int = JOB_FAILED) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code


class DivergenceError(BertkitError):
    """A training whose loss or weights are no longer finite; in a sweep that is a result like others."""


class UnsupportedError(BertkitError):
    """What the model cannot do, whatever the input is."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=WRONG_USAGE)


def usage_error(message: str) -> BertkitError:
    """A wrong name, option or combination of them (exit code 2)."""
    return BertkitError(message, exit_code=WRONG_USAGE)


def data_error(message: str) -> BertkitError:
    """A file whose content cannot be used (exit code 3)."""
    return BertkitError(message, exit_code=BAD_DATA)


def count_of(number: int, noun: str) -> str:
    """``1 text``, ``2,000 texts``: a number with its noun, whose plural ends in s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def verb_of(number: int, singular: str, plural: str) -> str:
    """The form of a verb after ``count_of(number, ...)``: ``has`` or ``have``."""
    return singular if number == 1 else plural


def list_names(names: Sequence[str], most: int = _SHOWN_NAMES) -> str:
    """The first names of a list, with commas, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def did_you_mean(word: str, known: Iterable[str], *, quoted: bool = True) -> str:
    """``' Did you mean "label"?'`` if a known word is spelled like ``word``, else the empty string."""
    near = find_nearest(word, known)
    if near is None:
        return ""
    return f' Did you mean "{near}"?' if quoted else f" Did you mean {near}?"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is spelled like ``word``, in any case of letters; None without one."""
    spellings = {each.casefold(): each for each in reversed(list(known))}
    near = difflib.get_close_matches(word.casefold(), list(reversed(spellings)), n=1)
    return spellings[near[0]] if near else None
