"""The one error a user is meant to read: one line that says where, what is there, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

JOB_FAILED = 1
WRONG_USAGE = 2
BAD_DATA = 3


class BertkitError(ValueError):
    """A mistake the user can mend.

    The message is one line. ``exit_code`` is what the command line ends with: 1 the job failed,
    2 wrong usage, 3 bad data. Mistakes of the programmer are ``assert``ions, never this.
    """

    def __init__(self, message: str, *, exit_code: int = JOB_FAILED) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code


class DivergenceError(BertkitError):
    """A training that left the finite numbers; in a search it is a result like others."""


def usage_error(message: str) -> BertkitError:
    """A wrong name, option or combination of them (exit code 2)."""
    return BertkitError(message, exit_code=WRONG_USAGE)


def data_error(message: str) -> BertkitError:
    """A file whose content cannot be used (exit code 3)."""
    return BertkitError(message, exit_code=BAD_DATA)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``' Did you mean "label"?'`` when a known word is near, else the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f' Did you mean "{near[0]}"?' if near else ""
