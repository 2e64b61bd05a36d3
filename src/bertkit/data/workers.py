"""Work units in worker processes, of this machine or of a Ray cluster, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from bertkit.data.unit_worker import UnitResult, UnitWorker, WorkUnit
from bertkit.errors import BertkitError
from bertkit.machine.processor import count_cores
from bertkit.options.job import Engine
from bertkit.storage.ray_cluster import map_on_cluster
from bertkit.storage.subprocess_worker import WorkerDiedError
from bertkit.storage.worker_pool import WorkerPool

FinishedUnit = tuple[WorkUnit, UnitResult]

_ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false"}
"""There is a process per core."""


def work_all(
    units: Iterable[WorkUnit], work: UnitWorker, workers: int | None, engine: Engine = "local"
) -> Iterator[FinishedUnit]:
    """Units with their results, in order; at most ``2 * workers + 1`` units are in memory at a time.

    With one worker on this machine the units are tokenized in this process, in which the library uses its own threads.
    None is a worker per core.
    """
    workers_here = workers or count_cores()
    if engine == "ray":
        yield from map_on_cluster(work, units, calls=workers)
    elif workers_here > 1:
        with WorkerPool(work, workers_here, environment=_ONE_THREAD) as pool:
            yield from _work_in_processes(units, pool)
    else:
        yield from ((unit, work(unit)) for unit in units)


def _work_in_processes(units: Iterable[WorkUnit], pool: WorkerPool[WorkUnit, UnitResult]) -> Iterator[FinishedUnit]:
    waiting: deque[tuple[WorkUnit, Future[UnitResult]]] = deque()
    for unit in units:
        waiting.append((unit, pool.submit(unit)))
        if len(waiting) > 2 * len(pool.workers):
            yield _wait_for(*waiting.popleft())
    while waiting:
        yield _wait_for(*waiting.popleft())


def _wait_for(unit: WorkUnit, result: Future[UnitResult]) -> FinishedUnit:
    try:
        return unit, result.result()
    except WorkerDiedError as error:
        raise BertkitError(
            f"a worker process died ({error}): it was killed, or memory ran out. Finished shards are kept; repeat the "
            "command, perhaps with fewer --workers."
        ) from error
