"""How much memory a device has, and how the C library handles what a step frees."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import torch

# <malloc.h>
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_CONTROL_GROUP = Path("/sys/fs/cgroup")
"""Where a container sees its own limits."""


def host_memory() -> tuple[int | None, int | None]:
    """Bytes of the host's memory: (total, available); (None, None) if the system has no /proc/meminfo.

    In a container with a limit (cgroup v2) they are those of the container.
    """
    try:
        with Path("/proc/meminfo").open(encoding="utf-8") as file:
            kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in file)}
    except OSError:
        return None, None
    total, available = kilobytes["MemTotal"] * 1024, kilobytes["MemAvailable"] * 1024
    found = _container_memory()
    return (total, available) if found is None else (min(total, found[0]), min(available, found[1]))


def _container_memory() -> tuple[int, int] | None:
    """The limit of this container and what is left of it, in bytes; None without a limit.

    Cached files count as left: the system drops them when memory is needed.
    """
    try:
        limit = int((_CONTROL_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" is no limit
        used = int((_CONTROL_GROUP / "memory.current").read_text(encoding="ascii"))
        lines = (_CONTROL_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    cached = sum(int(line.split()[1]) for line in lines if line.startswith(("active_file ", "inactive_file ")))
    return limit, max(0, limit - used + cached)


def total_memory(device: torch.device) -> int | None:
    """Bytes of memory that ``device`` has; None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return host_memory()[0]


def available_memory(device: torch.device) -> int | None:
    """Bytes that a new process can allocate on ``device``; None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return host_memory()[1]


def disable_malloc_trim() -> bool:
    """Make glibc keep large blocks after they are freed; False where it does not.

    glibc returns a freed large block to the system, and the next step faults its pages in again, 4 KB at a time: a
    sixth of a BERT-mini training step on a CPU. The process stays as large as its largest step, which training needs
    anyway.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return False
    # Blocks up to 1 GiB come from the heap, or up to 32 MiB, the most that older versions of glibc accept; and the heap
    # is never trimmed (2^31 - 1 is the largest int).
    has_threshold = mallopt(_M_MMAP_THRESHOLD, 1 << 30) or mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    return bool(mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1) and has_threshold)
