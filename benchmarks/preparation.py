"""The speed of preparing a corpus, compared with the tokenizer alone on the same text and cores.

    python benchmarks/preparation.py FILE... [--vocab-size 8192] [--repeats 3]

The tokenizer alone is ``tokenizers`` on lines that are already in memory, in parallel over all cores and without
offsets. ``bertkit prepare`` reads the files, finds documents and sentences, tokenizes, counts, hashes and writes
shards. The target is 0.8 of the tokenizer's speed, with a peak of less than 1 GB of memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

from bertkit.data.prepare import prepare
from bertkit.data.sources import read_texts
from bertkit.text.wordpiece import WordPiece, train


def time_bare(texts: list[str], tokenizer: WordPiece) -> float:
    """Seconds for the tokenizer alone, which uses all cores."""
    begin = time.perf_counter()
    for start in range(0, len(texts), 10_000):
        tokenizer.encode_ids_batch(texts[start : start + 10_000])
    return time.perf_counter() - begin


def time_ours(files: list[Path], tokenizer: WordPiece) -> float:
    """Seconds from files to shards."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        prepare(files, tokenizer=tokenizer, output=Path(folder) / "data")
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    lines = [line for text in read_texts(arguments.files) for line in text.splitlines() if line.strip()]
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    tokenizer = train(lines[::7], vocab_size=arguments.vocab_size)
    bare, ours = [], []
    for _ in range(arguments.repeats):
        bare.append(time_bare(lines, tokenizer))
        ours.append(time_ours(arguments.files, tokenizer))
    ratio = statistics.median(a / b for a, b in zip(bare, ours, strict=True))
    print(f"text               {megabytes:8.1f} MB")
    print(f"tokenizer alone    {megabytes / statistics.median(bare):8.2f} MB/s")
    print(f"bertkit prepare    {megabytes / statistics.median(ours):8.2f} MB/s")
    print(f"ratio              {ratio:8.2f}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"largest worker     {peak:8.2f} GB")


if __name__ == "__main__":
    main()
