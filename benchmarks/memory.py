"""Peak memory of a pre-training, compared with the estimate of ``--plan``.

    python benchmarks/memory.py DATA [--size mini] [--rows 16 64] [--seq-length 128] [--precision float32]

Every number is measured in its own process: ``bertkit pretrain`` with 12 steps, held-out losses, a checkpoint and the
finished model, with and without gradient checkpointing. The estimate should be within 15 % of the measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STEPS = 12

WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)
"""
"""A small process in between: on Linux the peak of a child starts at the size of its parent."""


def measure_peak(words: list[str]) -> int:
    """Peak memory of ``bertkit`` with these arguments, in bytes."""
    command = [sys.executable, "-c", WATCH, sys.executable, "-m", "bertkit", *words]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def estimate_peak(words: list[str]) -> int:
    """The estimate of ``--plan``, in bytes."""
    command = [sys.executable, "-m", "bertkit", *words, "--plan", "--json"]
    plan: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return int(plan["peak_memory"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--seq-length", type=int, default=128)
    parser.add_argument("--precision", default="float32")
    arguments = parser.parse_args()
    print(f"{arguments.size}, rows of {arguments.seq_length}, {arguments.precision}, peak in MiB")
    print(f"{'rows':>5}  {'checkpointing':>13}  {'measured':>8}  {'plan':>6}  {'error':>6}")
    with tempfile.TemporaryDirectory() as home:
        for rows in arguments.rows:
            for checkpointing in (False, True):
                run = Path(home) / f"{rows}-{checkpointing}"
                words = [
                    "pretrain",
                    str(arguments.data),
                    "--size",
                    arguments.size,
                    "--steps",
                    str(STEPS),
                    "-o",
                    str(run),
                ]
                words += ["--seq-length", str(arguments.seq_length), "--batch-size", str(rows), "--set"]
                words += [f"precision={arguments.precision}", f"gradient_checkpointing={checkpointing}".lower()]
                measured, estimated = measure_peak(words), estimate_peak(words)
                shown = f"{measured / 2**20:8,.0f}  {estimated / 2**20:6,.0f}  {estimated / measured - 1:+6.1%}"
                print(f"{rows:5}  {checkpointing!s:>13}  {shown}", flush=True)


if __name__ == "__main__":
    main()
