"""Which number format the matrix products run in, chosen by measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Literal

import torch
from torch.nn import functional

Precision = Literal["float32", "bfloat16"]

_WORTH_IT = 1.2
"""bfloat16 must win by this factor on the bare product to pay for its conversions."""

_ROWS, _WIDTH, _INNER = 512, 768, 3072
"""The larger matrix product of a BERT-base block, four rows of 128 tokens."""

_MOST_TURNS = 7
_LONGEST = 0.3
"""Seconds of measuring after which no further turn begins; there are two at least."""


def default_device() -> torch.device:
    """The first CUDA device, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_precision(device: torch.device) -> Precision:
    """bfloat16 where it is faster: known on CUDA by capability, found out on a CPU once a process in some 0.2 s."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if _speedup(device) >= _WORTH_IT else "float32"


def explain_precision(device: torch.device) -> str:
    """Why ``choose_precision`` chose what it chose, for a person."""
    if device.type == "cuda":
        return f"this device has {'bfloat16' if choose_precision(device) == 'bfloat16' else 'no bfloat16'} in hardware"
    return f"bfloat16 is {_speedup(device):.1f} times as fast as float32 here, and pays from {_WORTH_IT} times"


@cache
def measure_matmul_speed(device: torch.device) -> Mapping[str, float]:
    """Billions of floating-point operations a second in one matrix product, by number format.

    "float32 medium" is torch's permission to compute float32 products by whatever is fast: other kernels on some chips,
    bfloat16 on others. It is measured to be shown and never chosen, for float32 has to mean float32.

    The formats take turns, so that a busy machine slows all alike; the best turn counts.
    """
    runs = {name: _make_product(device, name) for name in ("float32", "float32 medium", "bfloat16")}
    turns: list[dict[str, float]] = []
    begin = time.perf_counter()
    while len(turns) < _MOST_TURNS and (len(turns) < 2 or time.perf_counter() - begin < _LONGEST):
        turns.append({name: run() for name, run in runs.items()})
    work = 2 * _ROWS * _WIDTH * _INNER / 1e9
    return {name: round(work / min(turn[name] for turn in turns), 1) for name in runs}


def _make_product(device: torch.device, name: str) -> Callable[[], float]:
    """A function that computes one product and returns its seconds."""
    number_format, _, freedom = name.partition(" ")
    dtype = getattr(torch, number_format)
    # Of their own, so that whoever measures in the middle of a training changes none of its random numbers.
    numbers = torch.Generator(device).manual_seed(0)
    states = torch.randn(_ROWS, _WIDTH, device=device, dtype=dtype, generator=numbers)
    weight = torch.randn(_INNER, _WIDTH, device=device, dtype=dtype, generator=numbers)

    def run() -> float:
        usual = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(freedom or usual)
        begin = time.perf_counter()
        functional.linear(states, weight)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - begin
        torch.set_float32_matmul_precision(usual)
        return seconds

    return run


def _speedup(device: torch.device) -> float:
    speeds = measure_matmul_speed(device)
    return speeds["bfloat16"] / speeds["float32"]


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Run what follows in ``precision``; parameters and optimizer stay in float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
