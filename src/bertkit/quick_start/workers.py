"""The processes of the quickstart: fine-tunings, several at a time in one thread each, and what is said when one ends.

Independent runs need not wait for each other, as the threads of one run do after each of its short matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager

from bertkit.errors import BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.finetuning.run import finetune
from bertkit.machine.device import default_device
from bertkit.machine.processor import count_cores
from bertkit.report.progress import Progress
from bertkit.storage.subprocess_worker import WorkerDiedError
from bertkit.storage.worker_pool import WorkerPool

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def count_processes() -> int:
    """The fine-tunings that compute at a time: one per core, one on a GPU."""
    return count_cores() if default_device().type == "cpu" else 1


def finetune_all(runs: Sequence[FinetuneRun], processes: int, name: str, progress: Progress) -> list[FinetuneResult]:
    """The results of ``runs``, of which ``processes`` are computed at a time; ``name`` is shown."""
    progress.start(name, len(runs), "run")
    progress.advance(0)
    with explain_ended_process(), WorkerPool(_finetune, min(processes, len(runs)), environment=_ONE_THREAD) as pool:
        futures = [pool.submit(run) for run in runs]
        for number, future in enumerate(as_completed(futures), start=1):
            future.result()  # raises the error of a process at once, while others still compute
            progress.advance(number)
    progress.finish()
    return [future.result() for future in futures]


@contextmanager
def explain_ended_process() -> Iterator[None]:
    """Raise a BertkitError where a process ended before its result was there."""
    try:
        yield
    except WorkerDiedError as error:
        reason = "it was killed, or memory ran out. Run it again" if error.exit_code < 0 else "its error is above"
        raise BertkitError(f"a process of the quickstart ended with {error}: {reason}.") from error


def _finetune(run: FinetuneRun) -> FinetuneResult:
    return finetune(run, Progress("quiet"))
