"""Work units tokenized by worker processes, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from queue import SimpleQueue

from bertkit.data.tokenizing import TokenizedChunk, TokenizerFile, UnitTokenizer, WorkUnit
from bertkit.errors import BertkitError
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError

Result = tuple[WorkUnit, list[TokenizedChunk]]

Worker = SubprocessWorker[WorkUnit, list[TokenizedChunk]]


def tokenize_all(units: Iterable[WorkUnit], rules: TokenizerFile, workers: int) -> Iterator[Result]:
    """Units with their results, in order; no more than a few units are in flight, whatever the input.

    One worker is this process itself, where the tokenizer uses threads of its own.
    """
    if workers > 1:
        yield from _tokenize_in_workers(units, [start_worker(rules) for _ in range(workers)])
        return
    tokenizer = UnitTokenizer(rules)
    for unit in units:
        yield unit, tokenizer.tokenize(unit)


class _TokenizeUnit:
    """Tokenizes units; the tokenizer is built at the first one, in the process that this is called in."""

    def __init__(self, rules: TokenizerFile) -> None:
        self._rules = rules

    @cached_property
    def _tokenizer(self) -> UnitTokenizer:
        return UnitTokenizer(self._rules)

    def __call__(self, unit: WorkUnit) -> list[TokenizedChunk]:
        return self._tokenizer.tokenize(unit)


def start_worker(rules: TokenizerFile) -> Worker:
    """A process that tokenizes units, in one thread."""
    return SubprocessWorker(_TokenizeUnit(rules), environment={"TOKENIZERS_PARALLELISM": "false"})


def _tokenize_in_workers(units: Iterable[WorkUnit], workers: list[Worker]) -> Iterator[Result]:
    """A thread for each worker, that waits for it."""
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def tokenize(unit: WorkUnit) -> list[TokenizedChunk]:
        worker = idle.get()
        try:
            return worker.call(unit)
        except WorkerDiedError as error:
            raise BertkitError(
                f"a worker process died ({error}): killed, or out of memory. What is finished is kept; repeat the "
                "command, perhaps with fewer --workers."
            ) from error
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
