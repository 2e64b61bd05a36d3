"""A process that calls a function for its parent: arguments and results are pickled through its pipes.

``multiprocessing`` is not used because its children import the caller's main module: a script without
``if __name__ == "__main__"`` would fail, and one that imports PyTorch would load it in each of them. This file is run
as a script in the child, so it imports the standard library only, before the child has the parent's ``sys.path``.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class WorkerDiedError(Exception):
    """The process ended without a result; ``exit_code`` is negative if a signal ended it."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class SubprocessWorker(Generic[Argument, Result]):
    """A process of its own in which ``function`` is called, once for every ``call`` and in their order.

    ``function`` must be picklable: defined in an importable module, or an instance of a class that is. It lives as long
    as the process, so it may keep state between calls. ``environment`` is added to that of the parent. What the
    function prints goes to stderr, or nowhere if ``quiet``. Ctrl-C does not reach it: that is for the parent.
    """

    def __init__(
        self,
        function: Callable[[Argument], Result],
        *,
        environment: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            env={**os.environ, **(environment or {})},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        # Sent at the first call: the pipe may be full until the child has imported the function's module.
        self._unsent: Callable[[Argument], Result] | None = function

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def call(self, argument: Argument) -> Result:
        """The result of the function; raises WorkerDiedError if the process ends before it."""
        try:
            if self._unsent is not None:
                pickle.dump((sys.path, sys.argv), self._input)
                pickle.dump(self._unsent, self._input)
                self._unsent = None
            pickle.dump(argument, self._input)
            self._input.flush()
            result: Result = pickle.load(self._output)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise WorkerDiedError(self._process.wait()) from error
        return result

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """End the process, after the call that it is busy with."""
        with suppress(BrokenPipeError):  # it has died, and call() has reported it
            self._input.close()
        self._output.close()
        self._process.wait()

    def __enter__(self) -> SubprocessWorker[Argument, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        self.close()


def _serve() -> None:
    """The child: read ``sys.path``, ``sys.argv``, the function and its arguments until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    arguments, results = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        sys.path[:], sys.argv[:] = pickle.load(arguments)  # the record of a run has the command
        function = pickle.load(arguments)
        while True:
            # With an older protocol a copy of every array would stay in memory until the end of the dump.
            pickle.dump(function(pickle.load(arguments)), results, protocol=pickle.HIGHEST_PROTOCOL)
            results.flush()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # without the clean-up of libraries: nothing is left to finish


if __name__ == "__main__":
    _serve()
