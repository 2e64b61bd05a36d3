"""From text files to a DATA folder of token shards.

One process reads and cuts the text into units; others find sentences and tokenize; the first puts the results
together in order. Units depend on the text alone, so the shards are the same bytes whatever the number of
workers. A finished shard is recorded beside itself: after a crash the same command goes on behind it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit import config
from bertkit.contracts import SubwordTokenizer
from bertkit.data.output_folder import begin, hold
from bertkit.data.shard_writer import ShardWriter, forget_journal
from bertkit.data.shards import TOKENIZER, Manifest, read_manifest, write_manifest
from bertkit.data.sources import ReadOptions, kind_of
from bertkit.data.tokenizing import TokenizerFile
from bertkit.data.work_units import UnitReader
from bertkit.data.workers import tokenize_all
from bertkit.errors import data_error, usage_error
from bertkit.storage.atomic import write_folder
from bertkit.storage.checksums import sha256_of

Report = Callable[[int, int], None]
"""Hears (bytes of input done, bytes in all)."""

_BYTES_A_WORKER = 2_000_000


def prepare(
    files: Sequence[Path],
    *,
    tokenizer: SubwordTokenizer,
    output: Path,
    workers: int | None = None,
    heldout: float = 0.01,
    reading: ReadOptions | None = None,
    report: Report | None = None,
) -> Manifest:
    """Prepare ``files`` into the folder ``output``, with ``heldout`` of the documents kept for measuring.

    A folder that this very command finished is left as it is; one that it began is finished; one that holds
    anything else is refused.
    """
    reading = reading or ReadOptions()
    _check(files, workers, heldout)
    with hold(output):
        hashes = {str(file): _hash(file) for file in files}
        if not begin(output, _job(hashes, tokenizer, heldout, reading)):
            return read_manifest(output)
        write_folder(output / TOKENIZER, tokenizer.save)
        writer = ShardWriter.resume(output, heldout=heldout)
        reader = UnitReader(files, reading)
        rules = TokenizerFile(output / TOKENIZER / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id)
        pending = islice(reader.units(), writer.units, None)
        for unit, pieces in tokenize_all(pending, rules, workers or _default_workers(reader.total_bytes)):
            writer.add(pieces)
            if report is not None:
                report(unit.done_bytes, reader.total_bytes)
        writer.finish()
        if not writer.records:
            raise data_error(f"there is no text in {_names(files)}: every document is empty or blank.")
        manifest = _manifest(tokenizer, writer, reader, hashes)
        write_manifest(output, manifest)
        forget_journal(output)
        return manifest


def _check(files: Sequence[Path], workers: int | None, heldout: float) -> None:
    if not files:
        raise usage_error("name at least one text file to prepare.")
    for file, times in Counter(files).items():
        kind_of(file)
        if times > 1:
            raise usage_error(f"{file} is named {times} times; once is enough.")
    if workers is not None and workers < 1:
        raise usage_error(f"--workers is {workers}; it must be 1 or more.")
    if not 0 <= heldout < 1:
        raise usage_error(f"--heldout is {heldout}; it is a share of the documents, from 0 to below 1.")


def _names(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} other files"


def _hash(file: Path) -> str:
    try:
        return sha256_of(file)
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror or error}.") from error


def _default_workers(total_bytes: int) -> int:
    """One a core, and fewer for small input, where starting them costs more than it saves."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, total_bytes // _BYTES_A_WORKER))


def _job(
    hashes: Mapping[str, str], tokenizer: SubwordTokenizer, heldout: float, reading: ReadOptions
) -> dict[str, Any]:
    """All that the content of the shards depends on."""
    return {
        "files": [list(each) for each in hashes.items()],
        "tokenizer": tokenizer.fingerprint,
        "heldout": heldout,
        "reading": config.to_json(reading),
    }


def _manifest(
    tokenizer: SubwordTokenizer, writer: ShardWriter, reader: UnitReader, hashes: Mapping[str, str]
) -> Manifest:
    return Manifest(
        tokenizer=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        shards=tuple(writer.records),
        tokens=sum(record.tokens for record in writer.records),
        sentences=sum(record.sentences for record in writer.records),
        documents=writer.documents,
        unknown_tokens=writer.unknown_tokens,
        empty_documents=reader.documents - writer.documents,
        duplicate_documents=reader.count_duplicates(),
        sources=reader.records(hashes),
    )
