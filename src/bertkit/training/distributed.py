"""Data-parallel training by the processes that ``torchrun`` starts: rank, batch shares, and sums over all processes.

Every process reads its share of the rows of every batch. Label counts are summed before the forward pass and gradients
after the backward pass, so every process makes the same update as a single process would with all rows. GPUs exchange
through nccl, CPUs through gloo.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from bertkit.errors import BertkitError, usage_error
from bertkit.machine.device import default_device
from bertkit.ranges import Range
from bertkit.rng import CounterRng

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for one that hangs. A process that has died is noticed at once."""

_LONGEST_WORK = timedelta(days=7)
"""How long the others wait for work of the first process alone, such as counting a corpus."""

_MOST_PROCESSES = 1_000_000

N = TypeVar("N", int, float)
T = TypeVar("T")


class PeerLostError(BertkitError):
    """Another process of the same training has ended, so this one cannot continue."""


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    """The group of ``size`` processes that this process belongs to, as number ``rank``.

    The methods that exchange something must be called by all processes in the same order. In a group of one they
    return their argument at once.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return self.rank == 0

    def share(self, indices: NDArray[np.int64], rows: int) -> list[NDArray[np.int64]]:
        """This process's part of a batch, in micro-batches of ``rows`` indices.

        All processes get the same number of micro-batches; the last ones may be empty.
        """
        begin, end = (len(indices) * rank // self.size for rank in (self.rank, self.rank + 1))
        largest = -(-len(indices) // self.size)
        return [indices[start : min(start + rows, end)] for start in range(begin, begin + largest, rows)]

    def seed(self, seed: int, step: int) -> int:
        """The seed of this process for ``step``: different for every rank, step and ``seed``."""
        return int(CounterRng(seed, step, np.array([self.rank])).below("rank", 2**53)[0, 0])

    def all_reduce_sum(self, numbers: Sequence[N]) -> list[N]:
        """Each number summed over all processes, which must pass equally many; floats are summed in float64."""
        if self.size == 1:
            return list(numbers)
        sums = torch.from_numpy(np.array(numbers)).to(default_device())
        dist.all_reduce(sums)
        summed: list[N] = sums.tolist()
        return summed

    def all_reduce_max(self, number: float) -> float:
        """The maximum of ``number`` over all processes."""
        if self.size == 1:
            return number
        maximum = torch.tensor(number, dtype=torch.float64, device=default_device())
        dist.all_reduce(maximum, dist.ReduceOp.MAX)
        return maximum.item()

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        self.all_reduce_max(0)

    def broadcast(self, value: T) -> T:
        """The ``value`` of the first process."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values)
        return values[0]

    def from_first(self, compute: Callable[[], T]) -> T:
        """What the first process computes; the others wait for it, however long it takes."""
        if self.size == 1:
            return compute()
        patient = dist.new_group(timeout=_LONGEST_WORK)
        values = [compute() if self.is_first else None]
        dist.broadcast_object_list(values, group=patient)
        dist.destroy_process_group(patient)
        return cast(T, values[0])

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over all processes, in place and in one all-reduce.

        This starts after the backward pass, not during it as in DDP. DDP builds its buckets in the order of the first
        pass, so a resumed run would add in another order and round differently; here the sums are bit-identical.
        Gradients of sharded parameters are summed during the pass (see ``sharding.py``).
        """
        if self.size == 1:
            return
        gradients = [each.grad for each in parameters if each.grad is not None and not is_sharded(each)]
        if not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, summed in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
            gradient.copy_(summed.view_as(gradient))


SINGLE_PROCESS = ProcessGroup()


def is_sharded(tensor: Tensor) -> bool:
    """Whether each process holds a part of ``tensor``, that is, whether it is a DTensor."""
    # Not isinstance: importing the module of DTensor takes two seconds.
    return hasattr(tensor, "full_tensor")


def full_tensor(tensor: Tensor) -> Tensor:
    """``tensor`` itself, or if it is sharded the complete tensor, gathered from all processes."""
    full: Tensor = tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return full


def rank() -> int:
    """The number of this process as torchrun gives it; 0 without torchrun."""
    return _read_number("RANK", 0, Range(0, _MOST_PROCESSES - 1))


def world_size() -> int:
    """The number of processes that torchrun has started; 1 without torchrun."""
    return _read_number("WORLD_SIZE", 1, Range(1, _MOST_PROCESSES))


def _read_number(name: str, default: int, range: Range) -> int:
    """A number that torchrun sets in the environment."""
    text = os.environ.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) not in range:
        raise usage_error(
            f'the environment has {name}="{text}"; torchrun sets a whole number {range}. Start with torchrun, or '
            f"unset {name}."
        )
    return int(text)


def _check_environment(size: int) -> None:
    """Check what the processes need to find each other."""
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if size > 1 and name not in os.environ:
            raise usage_error(
                f"the environment has WORLD_SIZE={size} and no {name}. Start with torchrun, or unset WORLD_SIZE."
            )
    if rank() >= size:
        raise usage_error(f"the environment has RANK={rank()} and WORLD_SIZE={size}; ranks are counted from 0.")


def _choose_gpu(gpus: int) -> int:
    """The number of the GPU of this process: every process on a machine has its own."""
    number = _read_number("LOCAL_RANK", 0, Range(0, _MOST_PROCESSES - 1))
    if number >= gpus:
        raise usage_error(
            f"torchrun started more processes on this machine than it has GPUs ({gpus}): lower --nproc-per-node."
        )
    return number


@contextmanager
def join_process_group() -> Iterator[ProcessGroup]:
    """The group that torchrun describes in the environment; all processes wait for each other at the end.

    Raises PeerLostError if another process has ended or hangs.
    """
    size = world_size()
    _check_environment(size)
    if size == 1:
        yield SINGLE_PROCESS
        return
    on_gpu = default_device().type == "cuda"
    if on_gpu:
        torch.cuda.set_device(_choose_gpu(torch.cuda.device_count()))
    try:
        store, number, _ = _connect_store()
        # Every group has its own prefix: the store still has the addresses of earlier groups, which no longer answer.
        dist.init_process_group(
            "nccl" if on_gpu else "gloo",
            store=PrefixStore(f"group-{next(_group_numbers)}", store),
            rank=number,
            world_size=size,
            timeout=TIMEOUT,
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
            gc.collect()  # ends gloo's threads now: one that still runs when the interpreter exits aborts the process


_group_numbers = itertools.count()
"""Numbers the groups that this process joins; all processes join them in the same order."""


@cache
def _connect_store() -> tuple[dist.Store, int, int]:
    """The store through which the processes find each other, the rank, and the number of processes."""
    connected: tuple[dist.Store, int, int] = next(iter(rendezvous("env://", timeout=TIMEOUT)))
    return connected


_LOST = (
    "another process of this training has ended or hangs. Checkpoints are intact: start all again, `pretrain` with "
    "--resume."
)
