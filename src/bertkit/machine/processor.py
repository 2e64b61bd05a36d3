"""The name of the processor."""

from __future__ import annotations

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
