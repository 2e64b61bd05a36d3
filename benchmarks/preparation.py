"""The speed of preparing a corpus, compared with the tokenizer alone and with datasets on the same text and cores.

    python benchmarks/preparation.py FILE_OR_FOLDER... [--vocab-size 8192] [--repeats 3]

The tokenizer alone is ``tokenizers`` on lines that are already in memory, in parallel over all cores and without
offsets. ``datasets`` reads the same files, maps a fast tokenizer of transformers over the documents with a process per
core, and saves the ids to disk. ``bertkit prepare`` reads the files, finds documents and sentences, tokenizes, counts,
hashes and writes shards. All are measured in turn, so that a busy machine slows all of them. The targets are 0.9 of
the tokenizer's speed, three times that of datasets, 1.8 times the speed of one worker with two, and a peak of less than
1 GB of memory. Files are .jsonl and .txt, plain or compressed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from bertkit.data.prepare import prepare
from bertkit.data.sources import read_texts
from bertkit.formats.compression import suffix_of
from bertkit.formats.text_files import find_text_files
from bertkit.optional import load
from bertkit.storage.subprocess_worker import count_cores
from bertkit.text.wordpiece import WordPiece, train


def time_bare(texts: list[str], tokenizer: WordPiece) -> float:
    """Seconds for the tokenizer alone, which uses all cores."""
    begin = time.perf_counter()
    for start in range(0, len(texts), 10_000):
        tokenizer.encode_ids_batch(texts[start : start + 10_000])
    return time.perf_counter() - begin


def time_ours(files: list[Path], tokenizer: WordPiece, workers: int) -> float:
    """Seconds from files to shards, with one core per worker."""
    parallelism = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        prepare(files, tokenizer=tokenizer, output=Path(folder) / "data", workers=workers)
        seconds = time.perf_counter() - begin
    if parallelism is None:
        del os.environ["TOKENIZERS_PARALLELISM"]
    return seconds


def time_datasets(files: list[Path], tokenizer: WordPiece) -> float:
    """Seconds from files to ids on disk with ``datasets.map``, one process per core."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        fast = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")

        def encode(batch: dict[str, list[str]]) -> dict[str, Any]:
            return {"input_ids": fast(batch["text"], add_special_tokens=False)["input_ids"]}

        datasets = load("datasets")
        datasets.disable_progress_bars()
        begin = time.perf_counter()
        parts = []
        for kind, options in (("json", {}), ("text", {"sample_by": "document"})):
            suffix = ".jsonl" if kind == "json" else ".txt"
            if names := [str(file) for file in files if suffix_of(file) == suffix]:
                loaded = datasets.load_dataset(kind, data_files=names, split="train", cache_dir=folder, **options)
                parts.append(loaded.select_columns("text"))
        text = datasets.concatenate_datasets(parts)
        ids = text.map(encode, batched=True, batch_size=100, num_proc=count_cores(), remove_columns="text")
        ids.save_to_disk(f"{folder}/ids")
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    files = list(find_text_files(arguments.paths).files)
    lines = [line for text in read_texts(files) for line in text.splitlines() if line.strip()]
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    tokenizer = train(lines[::7], vocab_size=arguments.vocab_size)
    cores = count_cores()
    systems: dict[str, Callable[[], float]] = {
        "tokenizer alone": lambda: time_bare(lines, tokenizer),
        "datasets.map": lambda: time_datasets(files, tokenizer),
        "one worker": lambda: time_ours(files, tokenizer, 1),
        "bertkit prepare": lambda: time_ours(files, tokenizer, cores),
    }
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(arguments.repeats):
        for name, measure in systems.items():
            seconds[name].append(measure())
    ours = seconds.pop("bertkit prepare")
    print(f"text               {megabytes:8.1f} MB in {len(files):,} files, {cores} cores")
    print(f"bertkit prepare    {megabytes / statistics.median(ours):8.2f} MB/s")
    for name, times in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(times, ours, strict=True))
        print(
            f"{name:18} {megabytes / statistics.median(times):8.2f} MB/s, bertkit prepare is {ratio:.2f} times as fast"
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"largest worker     {peak:8.2f} GB")


if __name__ == "__main__":
    main()
