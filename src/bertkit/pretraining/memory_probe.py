"""The peak memory of a pre-training, measured with a few steps in a separate process.

A formula would count the tensors only, and on a CPU they are half of the memory: the rest is kept by libraries or lost
between the blocks of the heap. A separate process starts with an empty heap, and if the memory does not suffice, only
that process is killed.
"""

from __future__ import annotations

import dataclasses
import math
import resource
import sys
from pathlib import Path

import torch

from bertkit.errors import BertkitError
from bertkit.machine.device import default_device
from bertkit.pretraining.model_size import affordable_tokens
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.trial_steps import FEWEST_ROWS, fewer_rows, train_briefly, with_enough_steps
from bertkit.storage.returned_errors import ReturnErrors, raise_returned
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError

_STEPS, _EVALUATIONS = 12, 8
"""Training steps and batches of held-out rows after which the heap of a BERT has nearly stopped growing."""

_TOKENS_TO_MEASURE = 4096
"""Micro-batches of up to this many tokens are measured in full."""

_MAX_TOKENS, _MAX_SECONDS = 8192, 10.0
"""Larger micro-batches are extrapolated, as memory is linear in the number of rows: two smaller ones are measured. The
larger of them has half of the rows, but at most this many tokens, and no more than a step of this many seconds has."""


def estimate_peak(run: PretrainRun) -> int:
    """Peak memory of one process in bytes, on the device that computes; ``run.precision`` must be set."""
    shapes = [(run.rows_at_once(rows), length) for rows, length in run.batch_shapes]
    most, length = max(shapes, key=math.prod)
    if most <= FEWEST_ROWS or length * most <= _TOKENS_TO_MEASURE:
        return _measure(run, 1.0)
    tokens = min(_MAX_TOKENS, int(affordable_tokens(run, _MAX_SECONDS)))
    large = max(FEWEST_ROWS, min(most // 2, tokens // length))
    small = large // 2
    with_small, with_large = (_measure(run, each / most) for each in (small, large))
    return with_large + (with_large - with_small) * (most - large) // (large - small)


def _measure(run: PretrainRun, share: float) -> int:
    """The peak with this share of the rows of every micro-batch."""
    try:
        with SubprocessWorker(ReturnErrors(_run_steps), quiet=True) as worker:
            return raise_returned(worker.call(_with_fewer_rows(run, share)))
    except WorkerDiedError as error:
        raise BertkitError(
            f"steps with {share:.0%} of the rows of a micro-batch could not be measured: most likely the memory does "
            "not suffice. Lower micro_batch_size, or set gradient_checkpointing=true."
        ) from error


def _with_fewer_rows(run: PretrainRun, share: float) -> PretrainRun:
    """The run with a share of the rows of each micro-batch, and at most two per step: more hold no more memory."""

    def rows(batch: int) -> int:
        micro_batches = 1 if run.micro_batch_size is None else min(2, -(-batch // run.micro_batch_size))
        return micro_batches * fewer_rows(run.rows_at_once(batch), share)

    changes: dict[str, int] = {"batch_size": rows(run.batch_size)}
    if run.long_batch_size is not None:
        changes["long_batch_size"] = rows(run.long_batch_size)
    if run.micro_batch_size is not None:
        changes["micro_batch_size"] = fewer_rows(run.micro_batch_size, share)
    changes["evaluation_examples"] = min(run.evaluation_examples, _EVALUATIONS * rows(run.batch_size))
    return dataclasses.replace(with_enough_steps(run), **changes)  # type: ignore[arg-type]


def _run_steps(run: PretrainRun) -> int:
    """The peak of a few steps; called in the other process."""
    train_briefly(run, _STEPS)
    return _peak()


def _peak() -> int:
    """The largest memory of this process in bytes; on a GPU that which torch has reserved.

    That is more than its tensors take: blocks that are free stay with torch's allocator. The CUDA context, some hundred
    MB, is not included, and can only be seen from outside.
    """
    if default_device().type == "cuda":
        return torch.cuda.max_memory_reserved()
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: on Linux it includes the size of the parent process before exec.
        sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(sizes["VmHWM"].split()[0]) * 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest * (1 if sys.platform == "darwin" else 1024)
