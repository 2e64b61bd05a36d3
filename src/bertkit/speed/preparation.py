"""The speed of preparing a corpus, beside the tokenizer alone and ``datasets`` on the same text and cores.

The tokenizer alone is ``tokenizers`` on lines that are already in memory, in parallel over all cores and without
offsets. ``datasets`` reads the same files, maps a fast tokenizer of transformers over the documents with a process per
core, and saves the ids to disk. bertkit reads the files, finds documents and sentences, tokenizes, counts, hashes and
writes shards.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bertkit.contracts import SubwordTokenizer
from bertkit.data.prepare import prepare
from bertkit.data.sources import read_texts
from bertkit.errors import count_of, data_error, usage_error
from bertkit.machine.processor import count_cores
from bertkit.optional import require
from bertkit.options.speed import PreparationPeer
from bertkit.speed.rounds import EXTRA, OWN, SpeedComparison, add_peers, compare
from bertkit.storage.suffixes import suffix_of
from bertkit.text.base import BaseTokenizer

_LINES = 10_000
_DATASETS_READERS = {".jsonl": ("json", {}), ".txt": ("text", {"sample_by": "document"})}


def compare_preparation(
    files: Sequence[Path],
    tokenizer: SubwordTokenizer,
    peers: Sequence[PreparationPeer],
    *,
    rounds: int,
    say: Callable[[str], None],
) -> SpeedComparison:
    """Megabytes of text per second of bertkit and of the peers, in turn."""
    megabytes = sum(len(text.encode()) for text in read_texts(files)) / 1e6
    if not megabytes:
        raise data_error(f"there is no text in {files[0]}.")
    own: dict[str, Callable[[], float]] = {OWN: partial(time_own, files, tokenizer)}
    systems, left_out = add_peers(own, peers, partial(peer_systems, files, tokenizer), say)
    speeds: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for name, measure in systems.items():
            speeds[name].append(megabytes / measure())
    cores = count_of(count_cores(), "core")
    return compare(
        speeds,
        work=f"preparing {megabytes:,.1f} MB of text in {count_of(len(files), 'file')} on {cores}",
        unit="MB",
        clock="wall time",
        left_out=left_out,
    )


def peer_systems(
    files: Sequence[Path], tokenizer: SubwordTokenizer, peer: PreparationPeer
) -> Iterator[tuple[str, Callable[[], float]]]:
    """The peer as a function that returns its seconds; a usage error if it is not installed, or reads other files."""
    if peer == "tokenizers":
        if not isinstance(tokenizer, BaseTokenizer):
            raise usage_error("--against tokenizers is for tokenizers of that library: WordPiece, BPE or words.")
        lines = [line for text in read_texts(files) for line in text.splitlines() if line.strip()]
        yield "tokenizers alone, text in memory", partial(time_tokenizer, lines, tokenizer)
        return
    require("datasets", extra=EXTRA, purpose="--against datasets")
    require("transformers", extra=EXTRA, purpose="--against datasets")
    other = next((file for file in files if suffix_of(file) not in _DATASETS_READERS), None)
    if other is not None:
        raise usage_error(f"--against datasets is for .txt and .jsonl files, and {other} is another.")
    yield f"datasets.map, num_proc={count_cores()}", partial(time_datasets, files, tokenizer)


def time_own(files: Sequence[Path], tokenizer: SubwordTokenizer) -> float:
    """Seconds from files to shards."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        prepare(files, tokenizer=tokenizer, output=Path(folder) / "data")
        return time.perf_counter() - begin


def time_tokenizer(lines: Sequence[str], tokenizer: BaseTokenizer) -> float:
    """Seconds for the tokenizer alone, which uses all cores."""
    begin = time.perf_counter()
    for start in range(0, len(lines), _LINES):
        tokenizer.encode_ids_batch(lines[start : start + _LINES])
    return time.perf_counter() - begin


def time_datasets(files: Sequence[Path], tokenizer: SubwordTokenizer) -> float:
    """Seconds from files to ids on disk with ``datasets.map``, one process per core."""
    datasets = require("datasets", extra=EXTRA, purpose="--against datasets")
    transformers = require("transformers", extra=EXTRA, purpose="--against datasets")
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        fast = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
        begin = time.perf_counter()
        parts = []
        for suffix, (kind, options) in _DATASETS_READERS.items():
            if names := [str(file) for file in files if suffix_of(file) == suffix]:
                loaded = datasets.load_dataset(kind, data_files=names, split="train", cache_dir=folder, **options)
                parts.append(loaded.select_columns("text"))
        text = datasets.concatenate_datasets(parts)
        encode = partial(_encode, fast)
        ids = text.map(encode, batched=True, batch_size=100, num_proc=count_cores(), remove_columns="text")
        ids.save_to_disk(f"{folder}/ids")
        return time.perf_counter() - begin


def _encode(tokenizer: Callable[..., Any], batch: Mapping[str, list[str]]) -> dict[str, Any]:
    return {"input_ids": tokenizer(batch["text"], add_special_tokens=False)["input_ids"]}
