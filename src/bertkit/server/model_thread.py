"""The one thread in which models are loaded, warmed up and computed.

OpenMP keeps workers for every thread that has computed. Where they are more than the cores, a worker that waits for the
next product sleeps at once, and is woken up for it: with one such thread in place of three a server embedded 1.12 to
1.28 times as many sentences per second for 16 clients (two cores of a Zen 5, docs/decisions.md).
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import ParamSpec, Self, TypeVar

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


class ModelThread:
    """A thread that calls functions one after another.

    The end of its block waits for the running call: a process that ends while PyTorch reads weights is aborted.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="bertkit-models", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._calls.put(None)
        self._thread.join()

    def submit(
        self, function: Callable[Arguments, Found], *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> Future[Found]:
        """Call ``function`` after what was submitted before, in the context of the caller."""
        future: Future[Found] = Future()
        context = contextvars.copy_context()

        def call() -> None:
            try:
                future.set_result(context.run(function, *arguments, **options))
            except BaseException as error:
                future.set_exception(error)

        self._calls.put(call)
        return future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
