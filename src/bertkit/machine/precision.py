"""The number format of matrix products: float32 or bfloat16, chosen by measuring the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Literal, get_args

import torch
from torch.nn import functional

from bertkit.machine.device import default_device

Precision = Literal["float32", "bfloat16"]
MEASURED = "measured"
"""The origin, in the record of a run, of a precision that nobody gave."""

_MIN_SPEEDUP = 1.2
"""bfloat16 must be faster by this factor on a product alone, because it also needs conversions."""

_ROWS, _WIDTH, _INNER = 512, 768, 3072
"""The larger matrix product of a BERT-base block, for 4 rows of 128 tokens."""

_MAX_ROUNDS = 7
_MAX_SECONDS = 0.3
"""No further round of measuring starts after this time; there are at least two rounds."""


def choose_precision(device: torch.device) -> Precision:
    """bfloat16 where it is faster: on CUDA by capability, on a CPU measured once per process.

    That takes 0.3 s, and a second where bfloat16 is emulated.
    """
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if measure_bfloat16_speedup(device) >= _MIN_SPEEDUP else "float32"


def reason_for_record(origins: Mapping[str, str]) -> dict[str, str]:
    """Why the precision of a run was chosen, for its record; nothing if no origin says that it was measured."""
    return {"precision_reason": explain_precision(default_device())} if MEASURED in origins.values() else {}


def explain_precision(device: torch.device) -> str:
    """The reason for the result of ``choose_precision``, as a sentence for the user."""
    if device.type == "cuda":
        return f"this device has {'bfloat16' if choose_precision(device) == 'bfloat16' else 'no bfloat16'} in hardware"
    speedup = measure_bfloat16_speedup(device)
    return f"bfloat16 is {speedup:.1f} times as fast as float32 here; it is used from {_MIN_SPEEDUP} times"


@cache
def measure_matmul_speed(device: torch.device) -> Mapping[str, float]:
    """GFLOP/s of one matrix product, by number format.

    The formats alternate, so that a busy machine slows them equally; the best round counts.
    """
    runs = {name: _make_product(device, name) for name in get_args(Precision)}
    rounds: list[dict[str, float]] = []
    begin = time.perf_counter()
    while len(rounds) < _MAX_ROUNDS and (len(rounds) < 2 or time.perf_counter() - begin < _MAX_SECONDS):
        rounds.append({name: run() for name, run in runs.items()})
    work = 2 * _ROWS * _WIDTH * _INNER / 1e9
    return {name: round(work / min(seconds[name] for seconds in rounds), 1) for name in runs}


def _make_product(device: torch.device, name: Precision) -> Callable[[], float]:
    """A function that computes one product and returns its seconds."""
    dtype = getattr(torch, name)
    # A generator of its own: measuring in the middle of a training changes none of its random numbers.
    generator = torch.Generator(device).manual_seed(0)
    states = torch.randn(_ROWS, _WIDTH, device=device, dtype=dtype, generator=generator)
    weight = torch.randn(_INNER, _WIDTH, device=device, dtype=dtype, generator=generator)

    def run() -> float:
        begin = time.perf_counter()
        functional.linear(states, weight)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - begin

    return run


def measure_bfloat16_speedup(device: torch.device) -> float:
    """How many times as fast as in float32 a product is in bfloat16."""
    speeds = measure_matmul_speed(device)
    return speeds["bfloat16"] / speeds["float32"]


def expected_speed(device: torch.device, precision: Precision) -> float:
    """FLOP/s that training is expected to reach: half of those of a matrix product."""
    return measure_matmul_speed(device)[precision] * 1e9 / 2


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """A context in which matrix products run in ``precision``; parameters and optimizer stay in float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
