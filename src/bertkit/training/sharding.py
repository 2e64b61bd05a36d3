"""Fully sharded training (FSDP2) for models that are too large for each process to hold completely.

Parameters, gradients and Adam's moments are divided by rows among the processes; a block is gathered when it is
computed. torch's modules for it are imported at their first use, since only ``--shard`` needs them and it takes 0.8 s.

A sharded checkpoint is written and read by ``torch.distributed.checkpoint`` as safetensors files, one per process; the
header of a file says which part of each tensor it has. So any number of processes, even one, can read what any other
number wrote. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from warnings import catch_warnings

from torch import Tensor, nn

from bertkit.optional import load
from bertkit.storage.atomic import explain_writing

Groups = Mapping[str, Mapping[str, Tensor]]


def shard(model: nn.Module, blocks: Iterable[nn.Module]) -> None:
    """Shard each of ``blocks``, and the rest of the model, among all processes. Gradients are summed, not averaged."""
    fsdp = load("torch.distributed.fsdp")
    for module in (*blocks, model):
        part = fsdp.fully_shard(module)
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)  # gloo has no sum with a factor


def write_shards(folder: Path, groups: Groups) -> None:
    """Write this process's part of the tensors into ``folder``; all processes must call this together.

    If one of them cannot write, the same BertkitError is raised in all.
    """
    checkpoint = load("torch.distributed.checkpoint")
    writer = checkpoint.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with explain_writing(folder.parent), catch_warnings(action="ignore"):  # torch warns if there is one process only
        try:
            checkpoint.save(_flatten(groups), storage_writer=writer)
        except checkpoint.CheckpointException as error:
            (failure, _), *_ = error.failures.values()
            raise failure from error


def read_shards(folder: Path, groups: Groups) -> None:
    """Load this process's part of the tensors from ``folder``, in place."""
    checkpoint = load("torch.distributed.checkpoint")
    with catch_warnings(action="ignore"):
        checkpoint.load(_flatten(groups), storage_reader=checkpoint.HuggingFaceStorageReader(str(folder)))


def _flatten(groups: Groups) -> dict[str, Tensor]:
    return {f"{group}/{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}
