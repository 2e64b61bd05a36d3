"""Tokenizing work units in worker processes, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from queue import SimpleQueue

from bertkit.data.tokenizing import TokenizedBlock, TokenizerFile, UnitTokenizer, WorkUnit
from bertkit.errors import BertkitError
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError

Result = tuple[WorkUnit, list[TokenizedBlock]]

Worker = SubprocessWorker[WorkUnit, list[TokenizedBlock]]


def tokenize_all(units: Iterable[WorkUnit], tokenizer_file: TokenizerFile, workers: int) -> Iterator[Result]:
    """Units with their results, in order; at most ``2 * workers + 1`` units are in memory at a time.

    With one worker the units are tokenized in this process, in which the library uses its own threads.
    """
    if workers > 1:
        yield from _tokenize_in_workers(units, [start_worker(tokenizer_file) for _ in range(workers)])
        return
    tokenizer = UnitTokenizer(tokenizer_file)
    for unit in units:
        yield unit, tokenizer.tokenize(unit)


class _TokenizeUnit:
    """Tokenizes units; the tokenizer is loaded at the first call, in the process of that call."""

    def __init__(self, tokenizer_file: TokenizerFile) -> None:
        self._tokenizer_file = tokenizer_file

    @cached_property
    def _tokenizer(self) -> UnitTokenizer:
        return UnitTokenizer(self._tokenizer_file)

    def __call__(self, unit: WorkUnit) -> list[TokenizedBlock]:
        return self._tokenizer.tokenize(unit)


def start_worker(tokenizer_file: TokenizerFile) -> Worker:
    """Start a process that tokenizes units in one thread, as there is a process per core."""
    return SubprocessWorker(_TokenizeUnit(tokenizer_file), environment={"TOKENIZERS_PARALLELISM": "false"})


def _tokenize_in_workers(units: Iterable[WorkUnit], workers: list[Worker]) -> Iterator[Result]:
    """``tokenize_all`` in processes; one thread per worker sends it units and waits for the results."""
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def tokenize(unit: WorkUnit) -> list[TokenizedBlock]:
        worker = idle.get()
        try:
            return worker.call(unit)
        except WorkerDiedError as error:
            raise BertkitError(
                f"a worker process died ({error}): it was killed, or memory ran out. Finished shards are kept; repeat "
                "the command, perhaps with fewer --workers."
            ) from error
        finally:
            idle.put(worker)

    waiting: deque[tuple[WorkUnit, Future[list[TokenizedBlock]]]] = deque()
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
