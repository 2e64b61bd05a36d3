"""Several worker processes that call the same function, each for one argument at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Generic

from bertkit.errors import BertkitError
from bertkit.storage.returned_errors import ReturnErrors, raise_returned
from bertkit.storage.subprocess_worker import Argument, Result, SubprocessWorker


class WorkerPool(Generic[Argument, Result]):
    """``size`` processes, which ``with`` ends: after their calls, or at once if an exception leaves it.

    ``function`` and ``environment`` are as in ``SubprocessWorker``.
    """

    def __init__(
        self, function: Callable[[Argument], Result], size: int, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.workers = [SubprocessWorker(ReturnErrors(function), environment=environment) for _ in range(size)]
        self._idle: SimpleQueue[SubprocessWorker[Argument, Result | BertkitError]] = SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(size)  # each waits for one process

    def submit(self, argument: Argument) -> Future[Result]:
        """The result of the function, or its BertkitError; WorkerDiedError if the process ends before it."""
        return self._threads.submit(self._call, argument)

    def _call(self, argument: Argument) -> Result:
        worker = self._idle.get()
        try:
            return raise_returned(worker.call(argument))
        finally:
            self._idle.put(worker)

    def __enter__(self) -> WorkerPool[Argument, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Killed first: a thread that waits for a result ends with its process.
        for worker in self.workers if kind is not None else ():
            worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.close()
