"""What a finished pre-training took, from its folder."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open

from bertkit.runs import RunFolder, read_metrics, read_run


class PretrainingCost(NamedTuple):
    """Numbers in the network, floating-point operations of all steps, and seconds."""

    parameters: int
    flop: float
    seconds: float


def read_cost(run: Path) -> PretrainingCost:
    """The operations are those of the steps that were logged, each standing for the steps since the one before."""
    folder = RunFolder(run)
    steps = [record for record in read_metrics(folder.metrics) if record["kind"] == "train"]
    ends = [0, *(record["step"] for record in steps)]
    flop = sum(
        record["flops_per_second"] * record["tokens"] / record["tokens_per_second"] * (end - begin)
        for record, (begin, end) in zip(steps, itertools.pairwise(ends), strict=True)
    )
    return PretrainingCost(_count_numbers(folder.model), flop, float(read_run(run)["seconds"]))


def _count_numbers(model: Path) -> int:
    with safe_open(model / "model.safetensors", "numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - no mapping
