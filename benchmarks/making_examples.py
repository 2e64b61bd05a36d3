"""The speed of making training examples on one core: reading from shards, masking and collating.

    python benchmarks/making_examples.py DATA [--seq-length 128] [--batch-size 256]

DATA is a folder that ``bertkit prepare`` wrote. The target is 200,000 tokens/s.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from bertkit.data.batches import batch_indices, batches_in_epoch
from bertkit.data.mixture import Mixture
from bertkit.data.shards import Corpus
from bertkit.objective_settings import Masking
from bertkit.pretraining.task import PretrainingTask
from bertkit.text.wordpiece import WordPiece

REPEATS = 7


def measure(source_folder: Path, task: PretrainingTask, seq_length: int, batch_size: int, batches: int) -> list[float]:
    """Tokens per second of each repeat."""
    tokenizer = WordPiece.load(source_folder / "tokenizer")
    source = task.source(Mixture((Corpus.open(source_folder),)), tokenizer, seq_length=seq_length, seed=0)
    batches = min(batches, batches_in_epoch(source, batch_size))
    speeds = []
    for epoch in range(REPEATS):
        begin, tokens = time.perf_counter(), 0
        for step in range(batches):
            indices = batch_indices(source, batch_size, seed=0, epoch=epoch, step=step)
            tokens += source.batch(epoch, indices).num_tokens
        speeds.append(tokens / (time.perf_counter() - begin))
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seq-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--batches", type=int, default=40)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, masking in (("subwords", Masking()), ("whole words", Masking(whole_word=True))):
        task = PretrainingTask(masking=masking)
        speeds = measure(arguments.data, task, arguments.seq_length, arguments.batch_size, arguments.batches)
        print(f"{name:12} {statistics.median(speeds):12,.0f} tokens/s (minimum {min(speeds):,.0f})")


if __name__ == "__main__":
    main()
