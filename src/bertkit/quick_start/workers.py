"""The fine-tunings of the quickstart, several at a time in processes of one thread each.

Independent runs need not wait for each other, as the threads of one run do after each of its short matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import as_completed

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
    with WorkerPool(_finetune, min(processes, len(runs)), environment=_ONE_THREAD) as pool:
        futures = [pool.submit(run) for run in runs]
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                future.result()  # raises the error of a process at once, while others still compute
                progress.advance(number)
        except WorkerDiedError as error:
            raise BertkitError(
                f"a process of the quickstart ended with {error}: it was killed, or memory ran out. Run it again."
            ) from error
    progress.finish()
    return [future.result() for future in futures]


def _finetune(run: FinetuneRun) -> FinetuneResult:
    return finetune(run, Progress("quiet"))
