"""Units of text tokenized by worker processes, in order.

A worker reads units from its standard input and writes their tokens to its standard output, until its input ends;
so none outlives its parent. ``multiprocessing`` is not used because its workers import the caller's main module: a
script without ``if __name__ == "__main__"`` would fail, and one that imports PyTorch would load it in each of them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue

from bertkit.data.tokenizing import TokenizedChunk, TokenizerFile, UnitTokenizer, WorkUnit
from bertkit.errors import BertkitError

Result = tuple[WorkUnit, list[TokenizedChunk]]

_PROGRAM = "import sys; sys.path = {path!r}; from bertkit.data.workers import serve; serve()"


def tokenize_all(units: Iterable[WorkUnit], rules: TokenizerFile, workers: int) -> Iterator[Result]:
    """Units with their results, in order; no more than a few units are in flight, whatever the input.

    One worker is this process itself, where the tokenizer uses threads of its own.
    """
    if workers > 1:
        yield from _tokenize_in_workers(units, [_Worker(rules) for _ in range(workers)])
        return
    tokenizer = UnitTokenizer(rules)
    for unit in units:
        yield unit, tokenizer.tokenize(unit)


def _tokenize_in_workers(units: Iterable[WorkUnit], workers: list[_Worker]) -> Iterator[Result]:
    """A thread for each worker, that waits for it."""
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def tokenize(unit: WorkUnit) -> list[TokenizedChunk]:
        worker = idle.get()
        try:
            return worker.tokenize(unit)
        finally:
            idle.put(worker)

    waiting: deque[tuple[WorkUnit, Future[list[TokenizedChunk]]]] = deque()
    threads = ThreadPoolExecutor(len(workers))
    try:
        for unit in units:
            waiting.append((unit, threads.submit(tokenize, unit)))
            if len(waiting) > 2 * len(workers):
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        threads.shutdown(cancel_futures=True)
        for worker in workers:
            worker.close()


class _Worker:
    """A process that runs ``serve``."""

    def __init__(self, rules: TokenizerFile) -> None:
        program = _PROGRAM.format(path=sys.path)
        self._process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._rules: TokenizerFile | None = rules

    def tokenize(self, unit: WorkUnit) -> list[TokenizedChunk]:
        try:
            if self._rules is not None:
                pickle.dump(self._rules, self._input)
                self._rules = None
            pickle.dump(unit, self._input)
            self._input.flush()
            result: list[TokenizedChunk] = pickle.load(self._output)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise BertkitError(
                f"a worker process died (exit code {self._process.wait()}): killed, or out of memory. What is finished "
                "is kept; repeat the command, perhaps with fewer --workers."
            ) from error
        return result

    def close(self) -> None:
        with suppress(BrokenPipeError):  # it died, which was said
            self._input.close()
        self._output.close()
        self._process.wait()


def serve() -> None:
    """Be a worker. Ctrl-C is for the process that started it, and so is all that it would print."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    units, results = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        tokenizer = UnitTokenizer(pickle.load(units))
        while True:
            pickle.dump(tokenizer.tokenize(pickle.load(units)), results)
            results.flush()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # the parent is done, or dead
