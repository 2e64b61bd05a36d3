"""The machine as training sees it: device, measured speed, precision, threads, memory and libraries."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from dataclasses import dataclass

import torch

from bertkit._version import __version__
from bertkit.errors import count_of
from bertkit.kernels import amx, fused
from bertkit.machine.device import default_device, explain_device
from bertkit.machine.memory import host_memory
from bertkit.machine.precision import Precision, choose_precision, explain_precision, measure_matmul_speed
from bertkit.machine.processor import count_cores, processor_name
from bertkit.results import Result

_LIBRARIES = ("torch", "tokenizers", "safetensors", "numpy", "msgspec", "cyclopts", "matplotlib", "scikit-learn")

_FOR_DEVELOPERS = {"test", "dev", "bench"}
_REQUIREMENT = re.compile(r"""([\w.-]+).*; *extra *== *['"]([\w-]+)['"]""")
"""Of an optional library: its name, and the extra of bertkit that installs it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Result):
    """The result of ``examine``.

    ``gflops`` is the speed of matrix products by precision, ``reason`` says why ``precision`` was chosen,
    ``device_reason`` why ``device`` was, ``fused`` whether the passes of ``kernels/fused.py`` are compiled, ``amx`` who
    computes products in bfloat16, and memory is in bytes.
    """

    bertkit: str
    python: str
    system: str
    processor: str
    cores: int
    threads: int
    memory_total: int | None
    memory_available: int | None
    device: str
    device_reason: str
    device_memory: int | None
    gflops: dict[str, float]
    precision: Precision
    reason: str
    fused: str
    amx: str
    installed: dict[str, str]
    missing: dict[str, str]
    data_folder: str | None

    def lines(self) -> list[str]:
        """The diagnosis as text."""
        speeds = ", ".join(f"{name} {speed:,.0f} GFLOP/s" for name, speed in self.gflops.items())
        memory = "" if self.device_memory is None else f", {_gigabytes(self.device_memory)}"
        return [
            f"bertkit     {self.bertkit} on Python {self.python}, {self.system}",
            f"device      {self.device}{memory}: {self.device_reason}",
            f"processor   {self.processor}, {count_of(self.cores, 'core')}, "
            f"{count_of(self.threads, 'thread')} for PyTorch",
            f"memory      {_gigabytes(self.memory_total)}, {_gigabytes(self.memory_available)} of it free",
            f"speed       {speeds}",
            f"precision   {self.precision}, the default: {self.reason}",
            f"passes      {self.fused}",
            f"products    {self.amx}",
            f"installed   {', '.join(f'{name} {version}' for name, version in self.installed.items())}",
            *(f"missing     {names}: pip install 'bertkit[{extra}]'" for extra, names in self._missing_by_extra()),
            f"data        {self.data_folder or 'BERTKIT_DATA is not set; tasks need --data'}",
        ]

    def _missing_by_extra(self) -> list[tuple[str, str]]:
        extras = dict.fromkeys(self.missing.values())
        return [(extra, ", ".join(name for name, its in self.missing.items() if its == extra)) for extra in extras]


def examine() -> Diagnosis:
    """Examine this machine, which takes about a second."""
    device = default_device()
    on_cuda = device.type == "cuda"
    optional = _list_optional()
    missing = {name: extra for name, extra in optional.items() if not _is_installed(name)}
    libraries = [*_LIBRARIES, *(name for name in optional if name not in missing)]
    memory_total, memory_available = host_memory()
    return Diagnosis(
        bertkit=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        processor=processor_name(),
        cores=count_cores(),
        threads=torch.get_num_threads(),
        memory_total=memory_total,
        memory_available=memory_available,
        device=torch.cuda.get_device_name(device) if on_cuda else "CPU",
        device_reason=explain_device(),
        device_memory=torch.cuda.get_device_properties(device).total_memory if on_cuda else None,
        gflops=dict(measure_matmul_speed(device)),
        precision=choose_precision(device),
        reason=explain_precision(device),
        fused=fused.explain(),
        amx=amx.explain(),
        installed={name: importlib.metadata.version(name) for name in libraries},
        missing=missing,
        data_folder=os.environ.get("BERTKIT_DATA"),
    )


def _list_optional() -> dict[str, str]:
    """The libraries of the extras, and the extra that installs each, from the metadata of the installed bertkit."""
    stated = (importlib.metadata.requires("bertkit") or []) if _is_installed("bertkit") else []
    found = [match for each in stated if (match := _REQUIREMENT.match(each))]
    return {match[1]: match[2] for match in found if match[2] not in _FOR_DEVELOPERS}


def _is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _gigabytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**30:.1f} GiB"
