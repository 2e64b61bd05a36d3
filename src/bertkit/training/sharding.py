"""A model that is too large for every process to hold whole: FSDP2, and checkpoints that each process writes a part of.

Parameters, gradients and Adam's moments lie divided by rows among the processes; a block is put together when it is
needed. This is loaded for ``--shard`` alone: torch's own modules for it take two seconds.

A sharded checkpoint is written and read by ``torch.distributed.checkpoint`` as safetensors files, one a process; which
part of a tensor a file has stands in its head. So any number of processes, one too, reads what any other number wrote,
and nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from warnings import catch_warnings

from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.fsdp import fully_shard

from bertkit.storage.atomic import explain_writing

Groups = Mapping[str, Mapping[str, Tensor]]


def shard(model: nn.Module, blocks: Iterable[nn.Module]) -> None:
    """Divide ``blocks``, each by itself, and the rest of the model among all processes. Gradients are summed."""
    for module in (*blocks, model):
        part = fully_shard(module)
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)  # gloo knows no product with a factor


def write_shards(folder: Path, groups: Groups) -> None:
    """Write this process's part of the tensors into ``folder``; all processes do so together.

    Where one of them cannot, the same BertkitError is raised in all.
    """
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with explain_writing(folder.parent), catch_warnings(action="ignore"):  # that one process alone is not distributed
        try:
            save(_flatten(groups), storage_writer=writer)
        except CheckpointException as error:
            (failure, _), *_ = error.failures.values()
            raise failure from error


def read_shards(folder: Path, groups: Groups) -> None:
    """Fill the tensors with this process's part of what ``folder`` has."""
    with catch_warnings(action="ignore"):
        load(_flatten(groups), storage_reader=HuggingFaceStorageReader(str(folder)))


def _flatten(groups: Groups) -> dict[str, Tensor]:
    return {f"{group}/{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}
