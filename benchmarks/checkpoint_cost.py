"""The cost of saving: seconds per checkpoint, flushed to the disk and pruned, compared with the steps in between.

    python benchmarks/checkpoint_cost.py [--size mini] [--batch 256] [--every 500] [--folder DIR]

The tokens are random, because they do not change the time. The target is 2 % of the run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Batch
from bertkit.checkpoint import training_state as store
from bertkit.encoders.bert import Bert, size
from bertkit.machine.device import default_device
from bertkit.machine.precision import choose_precision
from bertkit.model import Model
from bertkit.pretraining.task import PretrainingTask
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer

VOCABULARY, TOKENS, MASKED, KEPT = 30_522, 128, 0.15, 2


class RandomRows:
    """Rows of random tokens, of which a share is masked."""

    def __len__(self) -> int:
        return 1_000_000

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        ids = torch.randint(5, VOCABULARY, (len(indices), TOKENS))
        masked = torch.rand(ids.shape) < MASKED
        labels = {"mlm": ids.masked_fill(~masked, IGNORE), "nsp": torch.randint(0, 2, (len(indices),))}
        mask = torch.ones_like(ids, dtype=torch.bool)
        return Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=mask, labels=labels)


def time_steps(state: TrainingState, batch_size: int, steps: int) -> float:
    """Median seconds per step; the first step is not counted."""
    plan = Plan(
        total_steps=steps + 1,
        batch_size=batch_size,
        micro_batch_size=min(32, batch_size),
        precision=choose_precision(default_device()),
    )
    return statistics.median([step.seconds for step in fit(state, RandomRows(), plan)][1:])


def time_saves(state: TrainingState, folder: Path, saves: int) -> list[float]:
    """Seconds of each save, including hashes, flushes, reading back, and deleting the oldest."""
    durations = []
    for number in range(saves):
        begin = time.perf_counter()
        assert all(bool(weight.isfinite().all()) for weight in state.model.parameters())
        store.save(folder / "checkpoints", number, state.groups(), {"step": number})
        store.prune(folder / "checkpoints", KEPT)
        durations.append(time.perf_counter() - begin)
    return durations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", default="mini")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--saves", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    encoder = Bert(size(arguments.size, vocab_size=VOCABULARY))
    model = Model(encoder, PretrainingTask().build_objectives(encoder)).to(default_device())
    state = TrainingState(model, build_optimizer(model, OptimizerConfig()))
    step = time_steps(state, arguments.batch, arguments.steps)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        saves = time_saves(state, Path(folder), arguments.saves)
        megabytes = sum(file.stat().st_size for file in Path(folder).rglob("step-*/*")) / 1e6 / KEPT
    save = statistics.median(saves)
    share = save / (save + arguments.every * step)
    print(f"{arguments.size}: {megabytes:,.0f} MB in {save:.2f} s (maximum {max(saves):.2f}); {step:.2f} s per step")
    print(f"saved every {arguments.every:,} steps of {arguments.batch} rows: {share:.3%} of the run (target 2 %)")
    print(f"2 % are reached with a save every {round(save * 0.98 / 0.02 / step):,} steps")


if __name__ == "__main__":
    main()
