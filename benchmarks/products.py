"""The products of inference on a CPU, in float32 and 8-bit integers: GFLOP/s with weights that are not in the cache.

    OMP_NUM_THREADS=1 python benchmarks/products.py

The rows are those of a text alone and of a batch, the widths those of MiniLM and of BERT-base. Layers take turns, and
the best round of each counts; with one thread the clock is the CPU time of the process.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from bertkit.kernels.fused import is_compiled
from bertkit.machine.processor import processor_name
from bertkit.nn.inference_linear import CompiledLinear, LinearMaker, PackedLinear, PlainLinear
from bertkit.nn.int8_linear import InputRange, Int8Linear, PackedInt8Linear
from bertkit.speed.rounds import choose_clock

SHAPES = [(rows, *widths) for widths in ((384, 1536), (1536, 384), (768, 3072), (3072, 768)) for rows in (24, 1000)]
"""Rows, inputs and outputs."""

ROUNDS = 7
COLD_BYTES = 64 << 20
"""Together the weights of a shape, in float32, are larger than the cache."""


def makers(states: Tensor) -> dict[str, LinearMaker]:
    """What makes the layer of each system, for inputs such as ``states``."""
    inputs = InputRange(states.abs().amax(dim=0), after_activation=False)
    return {
        "bertkit": CompiledLinear,
        "oneDNN": partial(PackedLinear, dtype=torch.float32),
        "MKL": partial(PlainLinear, dtype=torch.float32),
        "bertkit int8": partial(Int8Linear, inputs=inputs),
        "oneDNN int8": partial(PackedInt8Linear, inputs=inputs),
    }


@torch.inference_mode()
def measure(rows: int, inputs: int, outputs: int) -> dict[str, float]:
    """GFLOP/s of each system."""
    states = torch.randn(rows, inputs)
    linears = [nn.Linear(inputs, outputs) for _ in range(COLD_BYTES // (4 * inputs * outputs))]
    systems = {name: [make(linear) for linear in linears] for name, make in makers(states).items()}
    seconds, clock = dict.fromkeys(systems, float("inf")), choose_clock()
    for number in range(1 + ROUNDS):
        for name, layers in systems.items():
            begin = clock()
            for layer in layers:
                layer(states)
            if number:
                seconds[name] = min(seconds[name], clock() - begin)
    work = 2 * rows * inputs * outputs * len(linears) / 1e9
    return {name: work / best for name, best in seconds.items()}


def main() -> None:
    if not is_compiled():
        raise SystemExit("bertkit's products need a C compiler (cc) with OpenMP.")
    print(f"{processor_name()}, {torch.get_num_threads()} threads, GFLOP/s")
    for shape in SHAPES:
        speeds = "  ".join(f"{name} {speed:5.0f}" for name, speed in measure(*shape).items())
        print(f"{' x '.join(map(str, shape)):18}  {speeds}")


if __name__ == "__main__":
    main()
