"""How much memory a pre-training will hold at its peak: found out by some steps in a process of its own.

A formula would know the tensors, and on a CPU they are half of it: the rest is what libraries keep and the holes
between the blocks of the heap. The other process knows nothing of what this one has held before, and when the memory
does not suffice it is the one that dies.
"""

from __future__ import annotations

import dataclasses
import resource
import sys
from pathlib import Path
from typing import Any

import torch

from bertkit.errors import BertkitError
from bertkit.pretraining.model_size import affordable_tokens
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.trial_steps import train_briefly, with_enough_steps
from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError
from bertkit.training.precision import default_device

_STEPS, _EVALUATIONS = 12, 8
"""So many steps, and batches of held-out rows, and the heap of a BERT has grown nearly as far as it will."""

_TOKENS_TO_MEASURE = 4096
"""Micro-batches of up to so many tokens are measured as they are."""

_MOST_TOKENS = 8192
_LONGEST_STEP = 10.0
"""Of larger ones a half, or this many tokens, or what takes so many seconds, and a half of that: memory grows with the
rows in a straight line."""


def estimate_peak(run: PretrainRun) -> int:
    """Bytes that one process will hold, on the device that computes; ``run`` has its precision."""
    batches = {run.seq_length: run.batch_size}
    if run.long_seq_length is not None:
        batches[run.long_seq_length] = run.long_batch_size or run.batch_size
    rows = {length: min(batch, run.micro_batch_size or batch) for length, batch in batches.items()}
    length, most = max(rows.items(), key=lambda each: each[0] * each[1])
    if length * most <= _TOKENS_TO_MEASURE:
        return _measure(run, 1.0)
    large = max(2, min(most // 2, _MOST_TOKENS // length, int(affordable_tokens(run, _LONGEST_STEP)) // length))
    small = large // 2
    with_small, with_large = (_measure(run, each / most) for each in (small, large))
    return with_large + (with_large - with_small) * (most - large) // (large - small)


def _measure(run: PretrainRun, share: float) -> int:
    """The peak with this share of the rows in every micro-batch."""
    try:
        with SubprocessWorker(_run_steps, quiet=True) as worker:
            peak = worker.call(_lessen(run, share))
    except WorkerDiedError as error:
        raise BertkitError(
            f"steps with {share:.0%} of the rows of a micro-batch could not be measured: most likely the memory does "
            "not suffice. Lower micro_batch_size, or set gradient_checkpointing=true."
        ) from error
    if isinstance(peak, BertkitError):
        raise peak
    return peak


def _lessen(run: PretrainRun, share: float) -> PretrainRun:
    """A long run whose micro-batches have a share of their rows. Of several in a step two hold as much as all."""

    def rows(batch: int) -> int:
        micro_batches = 1 if run.micro_batch_size is None else min(2, -(-batch // run.micro_batch_size))
        return micro_batches * max(1, round(min(batch, run.micro_batch_size or batch) * share))

    changes: dict[str, Any] = {"batch_size": rows(run.batch_size)}
    if run.long_batch_size is not None:
        changes["long_batch_size"] = rows(run.long_batch_size)
    if run.micro_batch_size is not None:
        changes["micro_batch_size"] = max(1, round(run.micro_batch_size * share))
    changes["evaluation_examples"] = min(run.evaluation_examples, _EVALUATIONS * rows(run.batch_size))
    return dataclasses.replace(with_enough_steps(run), **changes)


def _run_steps(run: PretrainRun) -> int | BertkitError:
    """The peak of a few steps; called in the other process."""
    try:
        train_briefly(run, _STEPS)
    except BertkitError as error:
        return error
    return _peak()


def _peak() -> int:
    if default_device().type == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: on Linux that begins with the size of the process that started this one.
        sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(sizes["VmHWM"].split()[0]) * 1024
    largest: Any = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(largest) * (1 if sys.platform == "darwin" else 1024)
