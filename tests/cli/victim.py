"""``bertkit``, one process of which is killed in the middle of something; run by ``test_torchrun.py`` through torchrun.

VICTIM is ``rank:place:count``: process ``rank`` is killed when it enters ``place`` for the ``count``-th time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch.distributed

from bertkit.checkpoint import store
from bertkit.cli.main import main
from bertkit.model import Model

PLACES: dict[str, tuple[Any, str]] = {
    "forward": (Model, "forward"),
    "all-reduce": (torch.distributed, "all_reduce"),
    "save": (store, "write_json"),
}


def lay_trap(place: str, count: int) -> None:
    home, name = PLACES[place]
    real, calls = getattr(home, name), iter(range(1, count))

    def trap(*arguments: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(home, name, trap)


if __name__ == "__main__":
    rank, place, count = os.environ["VICTIM"].split(":")
    if rank == os.environ["RANK"]:
        lay_trap(place, int(count))
    sys.exit(main())
