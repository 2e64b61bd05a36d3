"""What a finished pre-training cost, read from its run folder."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open

from bertkit.runs import RunFolder, read_metrics, read_run


class PretrainingCost(NamedTuple):
    """Parameters of the model, floating-point operations of its steps, and seconds of all parts of the run.

    ``joules`` is the energy of the machine's processors in this time, None where the system does not report it.
    """

    parameters: int
    flop: float
    seconds: float
    joules: float | None


def read_cost(run: Path, *, until: int | None = None) -> PretrainingCost:
    """The cost of the run in folder ``run``, or of its steps up to ``until``.

    Time and energy of a part of the steps are shared out by their operations, or by their number for an encoder that
    does not count operations. Only every ``log_every``-th step is logged: a logged step counts for all steps since the
    one logged before it.
    """
    folder = RunFolder(run)
    steps = [record for record in read_metrics(folder.metrics) if record["kind"] == "train"]
    ends = [0, *(record["step"] for record in steps)]
    of_all = flop = 0.0
    for record, (begin, end) in zip(steps, itertools.pairwise(ends), strict=True):
        # Earlier versions logged speeds alone.
        of_step = record.get("flops") or record["flops_per_second"] * record["tokens"] / record["tokens_per_second"]
        of_all += of_step * (end - begin)
        flop += of_step * (end - begin if until is None else max(0, min(end, until) - begin))
    share = flop / of_all if of_all else min(1.0, (ends[-1] if until is None else until) / ends[-1])
    record = read_run(run)
    joules = record.get("joules")
    return PretrainingCost(
        parameters=_count_parameters(folder.model),
        flop=flop,
        seconds=share * float(record["seconds"]),
        joules=None if joules is None else share * joules,
    )


def _count_parameters(model: Path) -> int:
    with safe_open(model / "model.safetensors", "numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - no mapping
