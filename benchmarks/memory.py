"""How much memory does a pre-training hold at its peak, and what had ``--plan`` said?

    python benchmarks/memory.py DATA [--size mini] [--rows 16 64] [--seq-length 128] [--precision float32]

Every figure is that of processes of their own: ``bertkit pretrain`` of twelve steps, held-out losses, a checkpoint and
the finished model, with and without gradient checkpointing. The estimate should be within 15 % of what is measured.
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
"""A small process between: on Linux the figure of a child begins with the size of its parent."""


def measure_peak(words: list[str]) -> int:
    """Bytes that ``bertkit`` with these words holds at its peak."""
    command = [sys.executable, "-c", WATCH, sys.executable, "-m", "bertkit", *words]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def estimate_peak(words: list[str]) -> int:
    """Bytes that ``--plan`` says it will hold."""
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
    asked = parser.parse_args()
    print(f"{asked.size}, rows of {asked.seq_length}, {asked.precision}, MiB at the peak")
    print(f"{'rows':>5}  {'checkpointing':>13}  {'measured':>8}  {'plan':>6}  {'apart':>6}")
    with tempfile.TemporaryDirectory() as home:
        for rows in asked.rows:
            for checkpointing in (False, True):
                run = Path(home) / f"{rows}-{checkpointing}"
                words = ["pretrain", str(asked.data), "--size", asked.size, "--steps", str(STEPS), "-o", str(run)]
                words += ["--seq-length", str(asked.seq_length), "--batch-size", str(rows), "--set"]
                words += [f"precision={asked.precision}", f"gradient_checkpointing={checkpointing}".lower()]
                measured, estimated = measure_peak(words), estimate_peak(words)
                shown = f"{measured / 2**20:8,.0f}  {estimated / 2**20:6,.0f}  {estimated / measured - 1:+6.1%}"
                print(f"{rows:5}  {checkpointing!s:>13}  {shown}", flush=True)


if __name__ == "__main__":
    main()
