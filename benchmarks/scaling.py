"""Pre-training with one process and with several of one thread each, through torchrun: tokens per second, efficiency.

    python benchmarks/scaling.py --size mini --batch 64 --processes 1 2

The batch stays the same, so each of two processes computes half of it and then waits for the sum of the gradients,
which is also timed on its own. The numbers of processes alternate, so that a busy machine slows all of them; the best
round of each counts. Processes on one machine share its memory and its turbo clock, which is part of the measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.batch import Batch
from bertkit.encoders.bert import Bert, size
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.speed.pretraining import VOCABULARY, make_batch
from bertkit.training.distributed import ProcessGroup, join_process_group
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer

_WARM_UP = 2
_SUMS = 5


class FullRows:
    """Any number of rows without padding."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return 1 << 20

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        return make_batch(len(indices), self.tokens)


def train(group: ProcessGroup, arguments: argparse.Namespace) -> dict[str, float]:
    """Tokens per second of all processes together, and the seconds of one sum of gradients."""
    torch.manual_seed(0)
    encoder = Bert(size(arguments.size, vocab_size=VOCABULARY))
    model = Model(
        encoder,
        {"mlm": MaskedLanguageModel(encoder.embeddings.word), "nsp": NextSentencePrediction(encoder.hidden_size)},
    )
    state = TrainingState(model, build_optimizer(model, OptimizerConfig()))
    total = _WARM_UP + arguments.steps
    plan = Plan(total_steps=total, batch_size=arguments.batch, precision=arguments.precision)
    steps = list(fit(state, FullRows(arguments.tokens), plan, group=group))[_WARM_UP:]
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    group.barrier()
    begin = time.perf_counter()
    for _ in range(_SUMS):
        group.sum_gradients(model.parameters())
    seconds = sum(step.seconds for step in steps)
    return {
        "tokens_per_second": sum(step.tokens for step in steps) / seconds,
        "step_seconds": seconds / len(steps),
        "sum_seconds": (time.perf_counter() - begin) / _SUMS,
    }


def launch(processes: int, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), __file__, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.run([*command, "--worker"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, float] = json.loads(process.stdout)
    return measured


def report(arguments: argparse.Namespace, best: dict[int, dict[str, float]]) -> None:
    print(
        f"BERT-{arguments.size}, batch {arguments.batch} x {arguments.tokens}, {arguments.precision}, "
        f"torch {torch.__version__}"
    )
    print(f"{'processes':>9} {'tokens/s':>10} {'efficiency':>10} {'step':>9} {'all-reduce':>10}")
    base = best[min(best)]["tokens_per_second"] / min(best)
    for processes, found in best.items():
        speed, step, exchange = found["tokens_per_second"], found["step_seconds"], found["sum_seconds"]
        share = speed / processes / base
        print(f"{processes:9} {speed:10,.0f} {share:10.0%} {step * 1e3:6.0f} ms {exchange * 1e3:7.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini", help="tiny ... large, or layers/width/heads")
    parser.add_argument("--batch", type=int, default=64, help="rows of all processes together")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--steps", type=int, default=8, help="steps in a round, after two that are not timed")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        torch.set_num_threads(1)
        with join_process_group() as group:
            found = train(group, arguments)
            if group.is_first:
                print(json.dumps(found))
        return
    rounds: list[dict[str, Any]] = [
        {"processes": processes, **launch(processes, sys.argv[1:])}
        for _ in range(arguments.repeats)
        for processes in arguments.processes
    ]
    best = {
        each: max(
            (result for result in rounds if result["processes"] == each), key=lambda result: result["tokens_per_second"]
        )
        for each in arguments.processes
    }
    report(arguments, best)
    if arguments.json:
        arguments.json.write_text(json.dumps({"torch": torch.__version__, "rounds": rounds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
