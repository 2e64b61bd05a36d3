"""The processor: its name and its cores."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor_name() -> str:
    """The name that the operating system gives the processor, such as "AMD EPYC"."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def count_cores() -> int:
    """The number of cores that this process may use, in a container often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
