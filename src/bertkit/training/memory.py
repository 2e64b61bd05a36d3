"""Memory that is freed in one step and wanted again in the next."""

from __future__ import annotations

import ctypes
import sys

# <malloc.h>
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Let this process keep large blocks that it frees; True where the C library could be told.

    glibc gives a large block back to the system when it is freed, and every step then faults its pages in
    again, 4 KB at a time: a sixth of a BERT-mini training step on a CPU. Kept, they cost nothing. The
    process stays as large as its largest step, which is what training needs anyway.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 1 << 30) and mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))
