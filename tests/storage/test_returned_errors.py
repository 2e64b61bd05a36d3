"""Errors that another process returns, so that this one can raise them."""

from __future__ import annotations

import pytest

from bertkit.errors import BAD_DATA, BertkitError, data_error
from bertkit.storage.returned_errors import ReturnErrors, raise_returned
from bertkit.storage.subprocess_worker import SubprocessWorker


def halve(number: int) -> int:
    if number % 2:
        raise data_error(f"{number} is odd.")
    return number // 2


def test_an_error_of_another_process_is_raised_here_and_the_process_lives_on() -> None:
    with SubprocessWorker(ReturnErrors(halve)) as worker:
        assert raise_returned(worker.call(4)) == 2
        with pytest.raises(BertkitError, match=r"^7 is odd\.$") as caught:
            raise_returned(worker.call(7))
        assert caught.value.exit_code == BAD_DATA
        assert raise_returned(worker.call(8)) == 4


def test_other_exceptions_are_raised_where_they_happen() -> None:
    with pytest.raises(TypeError):
        ReturnErrors(halve)("7")  # type: ignore[arg-type]
