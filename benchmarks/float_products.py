"""The float32 products of inference, beside oneDNN's and MKL's: GFLOP/s with weights that are not in the cache.

    OMP_NUM_THREADS=1 python benchmarks/float_products.py

The rows are those of a text alone and of a batch, the widths those of MiniLM and of BERT-base. Systems take turns, and
the best round of each counts; with one thread the clock is the CPU time of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from bertkit.kernels import float_products
from bertkit.kernels.fused import is_compiled
from bertkit.machine.processor import processor_name
from bertkit.speed.rounds import choose_clock

SHAPES = [(rows, *widths) for widths in ((384, 1536), (1536, 384), (768, 3072), (3072, 768)) for rows in (24, 1000)]
"""Rows, inputs and outputs."""

ROUNDS = 7
COLD_BYTES = 64 << 20
"""Together the weights of a shape are larger than the cache."""

Product = Callable[[Tensor, int], Tensor]


def products(weights: Sequence[Tensor]) -> dict[str, Product]:
    """Functions of states and the number of a weight."""
    own = [float_products.pack(weight.T) for weight in weights]
    prepacked = [torch.ops.mkldnn._reorder_linear_weight(weight) for weight in weights]
    return {
        "bertkit": lambda states, number: float_products.multiply(states, own[number]),
        "oneDNN": lambda states, number: torch.ops.mkldnn._linear_pointwise(
            states, prepacked[number], None, "none", [], ""
        ),
        "MKL": lambda states, number: F.linear(states, weights[number]),
    }


@torch.inference_mode()
def measure(rows: int, inputs: int, outputs: int) -> dict[str, float]:
    """GFLOP/s of each system."""
    states = torch.randn(rows, inputs)
    weights = [torch.randn(outputs, inputs) for _ in range(COLD_BYTES // (4 * inputs * outputs))]
    systems, clock = products(weights), choose_clock()
    seconds = dict.fromkeys(systems, float("inf"))
    for number in range(1 + ROUNDS):
        for name, product in systems.items():
            begin = clock()
            for each in range(len(weights)):
                product(states, each)
            if number:
                seconds[name] = min(seconds[name], clock() - begin)
    work = 2 * rows * inputs * outputs * len(weights) / 1e9
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
