"""Training of the quickstart in processes of one thread each.

The matrix products of a small network are so short that threads mostly wait for each other; processes do not.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from bertkit.errors import BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.finetuning.run import finetune
from bertkit.machine.device import default_device
from bertkit.options.job import ProgressMode
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import PretrainResult, pretrain
from bertkit.report.progress import Progress
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError, count_cores

_MOST_PROCESSES = 4
"""More processes exchange gradients for longer than they compute."""

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def count_processes() -> int:
    """The processes that train together: one per core, one on a GPU; a power of two, so that they divide a batch."""
    if default_device().type != "cpu":
        return 1
    return 1 << (min(count_cores(), _MOST_PROCESSES).bit_length() - 1)


def pretrain_together(run: PretrainRun, processes: int, progress: ProgressMode) -> PretrainResult:
    """Pre-train with ``processes`` processes, of which the first one shows the progress."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "WORLD_SIZE": str(processes)}
    function = partial(_pretrain, progress=progress)
    workers = [
        SubprocessWorker(function, environment={**_ONE_THREAD, **address, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(processes)
    ]
    return _call_all(workers, [run] * processes, lambda done: None)[0]


def _pretrain(run: PretrainRun, progress: ProgressMode) -> PretrainResult:
    with Progress(progress) as bar:
        return pretrain(run, bar)


def finetune_all(runs: Sequence[FinetuneRun], processes: int, name: str, progress: Progress) -> list[FinetuneResult]:
    """The results of ``runs``, of which ``processes`` are computed at a time; ``name`` is shown."""
    progress.start(name, len(runs), "run")
    progress.advance(0)
    workers = [SubprocessWorker(_finetune, environment=_ONE_THREAD) for _ in range(min(processes, len(runs)))]
    results = _call_all(workers, runs, progress.advance)
    progress.finish()
    return results


def _finetune(run: FinetuneRun) -> FinetuneResult:
    return finetune(run, Progress("quiet"))


def _call_all(
    workers: Sequence[SubprocessWorker[Argument, Result]],
    arguments: Sequence[Argument],
    report: Callable[[int], None],
) -> list[Result]:
    """The result of each argument, by the next worker that is free; ``report`` gets the number of results so far."""
    idle: SimpleQueue[SubprocessWorker[Argument, Result]] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def call(argument: Argument) -> Result:
        worker = idle.get()
        try:
            return worker.call(argument)
        finally:
            idle.put(worker)

    # The workers are inside: an exception ends them first, and with them the threads that wait for their results.
    with ThreadPoolExecutor(len(workers)) as threads, ExitStack() as stack:
        for worker in workers:
            stack.enter_context(worker)
        futures = [threads.submit(call, argument) for argument in arguments]
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                future.result()  # raises the error of a process at once, while others still compute
                report(number)
            return [future.result() for future in futures]
        except WorkerDiedError as error:
            raise BertkitError(
                f"a process of the quickstart ended with {error}: it was killed, or memory ran out. Run it again."
            ) from error


def _free_port() -> int:
    """A port of this machine that no other program uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
