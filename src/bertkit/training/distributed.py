"""Training by several processes that ``torchrun`` has started: who this process is, and sums over all of them.

Every process reads its share of the rows of every batch, counts are summed before the pass and gradients after it, and
so every process makes the same update as one process would with all the rows. GPUs exchange by nccl, CPUs by gloo.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from bertkit.errors import BertkitError
from bertkit.rng import CounterRng
from bertkit.training.precision import default_device

PATIENCE = timedelta(minutes=10)
"""How long a process waits for one that hangs. One that has died is noticed at once."""

N = TypeVar("N", int, float)
T = TypeVar("T")


class PeerLostError(BertkitError):
    """Another process of the same training has ended, and this one cannot go on without it."""


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    """One of ``size`` processes, counted by ``rank``. Alone in its group a process pays nothing for what is here.

    Whatever exchanges something must be called by all processes, and in the same order.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes and speaks for all."""
        return self.rank == 0

    def share(self, indices: NDArray[np.int64], rows: int) -> list[NDArray[np.int64]]:
        """This process's part of a batch in micro-batches of ``rows``. All have as many; the last may be empty."""
        begin, end = (len(indices) * place // self.size for place in (self.rank, self.rank + 1))
        largest = -(-len(indices) // self.size)
        return [indices[at : min(at + rows, end)] for at in range(begin, begin + largest, rows)]

    def seed(self, seed: int, step: int) -> int:
        """What this process draws its random numbers of ``step`` from."""
        return int(CounterRng(seed, step, np.array([self.rank])).below("rank", 2**53)[0, 0])

    def all_reduce_sum(self, numbers: Mapping[str, N]) -> dict[str, N]:
        """The sums of what all processes have, under the same names; fractions are summed in float64."""
        if self.size == 1:
            return dict(numbers)
        sums = torch.from_numpy(np.array(list(numbers.values()))).to(default_device())
        dist.all_reduce(sums)
        return dict(zip(numbers, sums.tolist(), strict=True))

    def all_reduce_max(self, number: float) -> float:
        """The highest of the numbers that the processes have."""
        if self.size == 1:
            return number
        found = torch.tensor(number, dtype=torch.float64, device=default_device())
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.item()

    def barrier(self) -> None:
        """Go on when all are here."""
        self.all_reduce_max(0)

    def broadcast(self, value: T) -> T:
        """What the first process has for ``value``."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values)
        return values[0]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add the gradients of all processes up, in place and in one all-reduce.

        It begins after the pass and not, as in DDP, during it: the sums of a step are then the same bits after a resume
        as before, with any number of processes, because no bucket depends on the order of a first pass. Gradients of
        sharded parameters were summed in the pass (see ``sharding.py``).
        """
        if self.size == 1:
            return
        gradients = [each.grad for each in parameters if each.grad is not None and not is_sharded(each)]
        if not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, its_sum in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
            gradient.copy_(its_sum.view_as(gradient))


SINGLE_PROCESS = ProcessGroup()


def is_sharded(tensor: Tensor) -> bool:
    """Whether several processes hold a part of it each: a DTensor, whose module takes two seconds to load."""
    return hasattr(tensor, "full_tensor")


def full_tensor(tensor: Tensor) -> Tensor:
    """The tensor with the parts of all processes put together."""
    full: Tensor = tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return full


def rank() -> int:
    """The number of this process among those that torchrun has started; 0 without it."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """How many processes torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def join_process_group() -> Iterator[ProcessGroup]:
    """The group that torchrun describes in the environment, until the end of the ``with``, where all meet again.

    Raises PeerLostError where another process is gone.
    """
    size = world_size()
    if size == 1:
        yield SINGLE_PROCESS
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    try:
        store, number, _ = _meet()
        # A group of its own in the store: of an earlier one addresses are left there at which nobody answers any more.
        dist.init_process_group(
            "nccl" if torch.cuda.is_available() else "gloo",
            store=PrefixStore(f"world-{next(_worlds)}", store),
            rank=number,
            world_size=size,
            timeout=PATIENCE,
        )
        group = ProcessGroup(rank=rank(), size=size)
        yield group
        group.barrier()
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise PeerLostError(_LOST) from error
        raise
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
            gc.collect()  # ends gloo's threads now: one that is still there at the interpreter's end aborts the process


_worlds = itertools.count()
"""Counts those that this process was in; all processes come to them in the same order."""


@cache
def _meet() -> tuple[dist.Store, int, int]:
    """The store through which the processes find each other, with the rank and the number of them."""
    found: tuple[dist.Store, int, int] = next(iter(rendezvous("env://", timeout=PATIENCE)))
    return found


_LOST = "another process of this training has ended or hangs. What was saved is good: start all again with --resume."
