"""Which number format the matrix products run in, chosen by measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch.nn import functional

Precision = Literal["float32", "bfloat16"]

_WORTH_IT = 1.2
"""bfloat16 must win by this factor on the bare product to pay for its conversions."""


def default_device() -> torch.device:
    """The first CUDA device, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_precision(device: torch.device) -> Precision:
    """bfloat16 where it is faster: known on CUDA by capability, found out on a CPU in some 20 ms."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if bfloat16_speedup() >= _WORTH_IT else "float32"


def bfloat16_speedup(size: int = 512) -> float:
    """How many times faster a square product is in bfloat16 than in float32 on this CPU."""
    return _seconds(torch.randn(size, size)) / _seconds(torch.randn(size, size, dtype=torch.bfloat16))


def _seconds(matrix: torch.Tensor, repeats: int = 5) -> float:
    def once() -> float:
        begin = time.perf_counter()
        functional.linear(matrix, matrix)
        return time.perf_counter() - begin

    return _best(once, repeats)


def _best(measure: Callable[[], float], repeats: int) -> float:
    measure()
    return min(measure() for _ in range(repeats))


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Run what follows in ``precision``; parameters and optimizer stay in float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
