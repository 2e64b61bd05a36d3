"""Work units in worker processes, of this machine or of a Ray cluster, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from bertkit.data.unit_worker import UnitResult, UnitWorker, WorkUnit
from bertkit.errors import BertkitError
from bertkit.options.job import Engine
from bertkit.storage.ray_cluster import map_on_cluster
from bertkit.storage.returned_errors import ReturnErrors, raise_returned
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError, count_cores

Result = tuple[WorkUnit, UnitResult]

Worker = SubprocessWorker[WorkUnit, UnitResult | BertkitError]


def work_all(
    units: Iterable[WorkUnit], work: UnitWorker, workers: int | None, engine: Engine = "local"
) -> Iterator[Result]:
    """Units with their results, in order; at most ``2 * workers + 1`` units are in memory at a time.

    With one worker on this machine the units are tokenized in this process, in which the library uses its own threads.
    None is a worker per core.
    """
    if engine == "ray":
        yield from map_on_cluster(work, units, calls=workers)
        return
    workers = workers or count_cores()
    if workers > 1:
        yield from _work_in_processes(units, [start_worker(work) for _ in range(workers)])
        return
    for unit in units:
        yield unit, work(unit)


def start_worker(work: UnitWorker) -> Worker:
    """Start a process that tokenizes units in one thread, as there is a process per core."""
    return SubprocessWorker(ReturnErrors(work), environment={"TOKENIZERS_PARALLELISM": "false"})


def _work_in_processes(units: Iterable[WorkUnit], workers: list[Worker]) -> Iterator[Result]:
    """``work_all`` in processes; one thread per worker sends it units and waits for the results."""
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def work(unit: WorkUnit) -> UnitResult:
        worker = idle.get()
        try:
            result = worker.call(unit)
        except WorkerDiedError as error:
            raise BertkitError(
                f"a worker process died ({error}): it was killed, or memory ran out. Finished shards are kept; repeat "
                "the command, perhaps with fewer --workers."
            ) from error
        finally:
            idle.put(worker)
        return raise_returned(result)

    waiting: deque[tuple[WorkUnit, Future[UnitResult]]] = deque()
    threads = ThreadPoolExecutor(len(workers))
    try:
        for unit in units:
            waiting.append((unit, threads.submit(work, unit)))
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
