"""What a finished pre-training cost, read from its run folder."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open

from bertkit.runs import RunFolder, read_metrics, read_run


class PretrainingCost(NamedTuple):
    """Parameters of the model, floating-point operations of all steps, and seconds of all parts of the run.

    ``joules`` is the energy of the machine's processors in this time, None where the system does not report it.
    """

    parameters: int
    flop: float
    seconds: float
    joules: float | None


def read_cost(run: Path) -> PretrainingCost:
    """The cost of the run in folder ``run``.

    Only every ``log_every``-th step is logged: a logged step counts for all steps since the one logged before it.
    """
    folder = RunFolder(run)
    steps = [record for record in read_metrics(folder.metrics) if record["kind"] == "train"]
    ends = [0, *(record["step"] for record in steps)]
    flop = sum(
        record["flops_per_second"] * record["tokens"] / record["tokens_per_second"] * (end - begin)
        for record, (begin, end) in zip(steps, itertools.pairwise(ends), strict=True)
    )
    record = read_run(run)
    return PretrainingCost(_count_parameters(folder.model), flop, float(record["seconds"]), record.get("joules"))


def _count_parameters(model: Path) -> int:
    with safe_open(model / "model.safetensors", "numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - no mapping
