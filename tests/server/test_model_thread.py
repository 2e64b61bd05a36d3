"""The thread of the models."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from bertkit.server.model_thread import ModelThread


def test_calls_run_in_one_thread_in_their_order() -> None:
    names: list[tuple[int, str]] = []
    with ModelThread() as thread:
        for each in range(5):
            thread.submit(lambda number: names.append((number, threading.current_thread().name)), each)
    assert names == [(number, "bertkit-models") for number in range(5)]


def test_an_error_is_that_of_its_call_alone() -> None:
    thread = ModelThread()
    failed, done = thread.submit(int, "x"), thread.submit(int, "7")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(10)
    assert done.result(10) == 7


def test_the_end_of_the_block_waits_for_the_running_call() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert not ended.wait(0.2)
        ended.set()

    with ModelThread() as thread:
        thread.submit(work)
        assert begun.wait(10)
    assert ended.is_set()


def test_a_call_sees_the_context_of_its_caller() -> None:
    """The packages that the caller trusts are in a variable of the context."""
    trusted = ContextVar("trusted", default="nothing")
    trusted.set("my_lab")
    assert ModelThread().submit(trusted.get).result(10) == "my_lab"
