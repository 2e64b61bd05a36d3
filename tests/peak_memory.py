"""The peak of the memory of this process, and how to measure it from now on.

Not ``ru_maxrss`` on Linux: it includes the size of the parent process at ``exec``, and cannot start again.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""See proc(5)."""


def peak_memory() -> float:
    """Megabytes since ``reset_peak``, or since the process began."""
    if _STATUS.exists():
        sizes = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(sizes["VmHWM"].split()[0]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def reset_peak() -> float:
    """Start the measurement again, where the system can, and return the megabytes in use now."""
    if _CLEAR.exists():
        _CLEAR.write_text(_RESET_PEAK)
    return peak_memory()
