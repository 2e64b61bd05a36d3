"""Errors about a user's files that cross the border of a process: returned there, and raised here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from bertkit.errors import BertkitError

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class ReturnErrors(Generic[Argument, Result]):
    """``function``, but a BertkitError is returned, which would end the process of a worker if it were raised.

    It can be pickled if ``function`` can. ``raise_returned`` raises the error in the process that gets the result.
    """

    def __init__(self, function: Callable[[Argument], Result]) -> None:
        self._function = function

    def __call__(self, argument: Argument) -> Result | BertkitError:
        """The result of the function, or its error."""
        try:
            return self._function(argument)
        except BertkitError as error:
            return error


def raise_returned(result: Result | BertkitError) -> Result:
    """The result of a call of ``ReturnErrors``; its error is raised."""
    if isinstance(result, BertkitError):
        raise result
    return result
