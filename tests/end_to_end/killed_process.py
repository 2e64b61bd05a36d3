"""The command ``bertkit``, one process of which is killed; ``test_torchrun.py`` starts it with torchrun.

VICTIM is ``rank:place:count``: process ``rank`` is killed when it enters ``place`` for the ``count``-th time, or finds
its disk full if the place is ``full disk``.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Any

import torch.distributed
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

from bertkit.checkpoint import training_state as store
from bertkit.cli.main import main
from bertkit.model import Model

FULL_DISK = "full disk"
PLACES: dict[str, tuple[Any, str]] = {
    "forward": (Model, "forward"),
    "all-reduce": (torch.distributed, "all_reduce"),
    "save": (store, "write_json"),
    FULL_DISK: (HuggingFaceStorageWriter, "write_data"),
}


def set_trap(place: str, count: int) -> None:
    owner, name = PLACES[place]
    real, calls = getattr(owner, name), iter(range(1, count))

    def trap(*arguments: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            if place == FULL_DISK:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(owner, name, trap)


if __name__ == "__main__":
    rank, place, count = os.environ["VICTIM"].split(":")
    if rank == os.environ["RANK"]:
        set_trap(place, int(count))
    sys.exit(main())
