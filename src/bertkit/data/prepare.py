"""From text files to a DATA folder of token shards.

One process reads and cuts the text into units; others find sentences and tokenize; the first puts the results
together in order. Units depend on the text alone, so the shards are the same bytes whatever the number of
workers. A finished shard is recorded beside itself: after a crash the same command goes on behind it.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit import config
from bertkit.data._tokenizing import TokenizerRules, tokenize_all
from bertkit.data._units import UnitReader
from bertkit.data._writer import ShardWriter, journal_of
from bertkit.data.shards import MANIFEST, TOKENIZER, Corpus, Manifest, read_manifest, write_manifest
from bertkit.data.sources import Reading, kind_of
from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.storage import (
    TEMPORARY_PREFIX,
    explain_writing,
    read_json,
    remove_temporaries,
    sha256_of,
    write_json,
)
from bertkit.text.wordpiece import WordPiece

Report = Callable[[int, int], None]
"""Hears (bytes of input done, bytes in all)."""

JOB = "job.json"
_SMALL_INPUT = 4_000_000


def prepare(
    files: Sequence[Path],
    *,
    tokenizer: WordPiece,
    output: Path,
    workers: int | None = None,
    heldout: float = 0.01,
    reading: Reading | None = None,
    report: Report | None = None,
) -> Manifest:
    """Prepare ``files`` into the folder ``output``, with ``heldout`` of the documents kept for measuring.

    A folder that this very command finished is left as it is; one that it began is finished; one that holds
    anything else is refused.
    """
    reading = reading or Reading()
    _check(files, workers, heldout)
    with _hold(output):
        hashes = {str(file): _hash(file) for file in files}
        if _is_finished(output, _job(hashes, tokenizer, heldout, reading)):
            return read_manifest(output)
        with explain_writing(output / TOKENIZER):
            tokenizer.save(output / TOKENIZER)
        writer = ShardWriter.resume(output, heldout=heldout)
        reader = UnitReader(files, reading)
        rules = TokenizerRules(output / TOKENIZER / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id)
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
        writer.forget_journal()
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
    """One a core; one for small input, where starting processes costs more than it saves."""
    if total_bytes <= _SMALL_INPUT:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _job(hashes: Mapping[str, str], tokenizer: WordPiece, heldout: float, reading: Reading) -> dict[str, Any]:
    """All that the content of the shards depends on."""
    return {
        "files": [list(each) for each in hashes.items()],
        "tokenizer": tokenizer.fingerprint,
        "heldout": heldout,
        "reading": config.to_json(reading),
    }


@contextmanager
def _hold(output: Path) -> Iterator[None]:
    """Make the folder and keep other processes out of it until the end; refuse one that is not ours."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(output, os.O_RDONLY)
    except OSError as error:
        raise usage_error(f"cannot write to {output}: {error.strerror}. Choose another -o folder.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (output / JOB).is_file() and any(not _is_temporary(path) for path in output.iterdir()):
            raise usage_error(f"{output} is not empty and was not made by bertkit prepare. Choose another -o folder.")
        remove_temporaries(output)
        yield
    except BlockingIOError as error:
        raise usage_error(f"{output} is being written by another process. Choose another -o folder.") from error
    finally:
        os.close(descriptor)


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(TEMPORARY_PREFIX)


def _is_finished(output: Path, job: dict[str, Any]) -> bool:
    """Whether ``output`` has this job's whole result; if not, it is ready for the job to begin or to go on."""
    known = read_json(output / JOB) if (output / JOB).is_file() else None
    if known == job:
        return _is_whole(output)
    if known is not None and ((output / MANIFEST).is_file() or journal_of(output)):
        differing = [name for name in job if not isinstance(known, dict) or known.get(name) != job[name]]
        raise usage_error(
            f"{output} holds a corpus with other {', '.join(differing)}. Choose another -o folder, or delete that one."
        )
    with explain_writing(output):
        for path in output.glob("*.safetensors"):
            path.unlink()
    write_json(output / JOB, job)
    return False


def _is_whole(output: Path) -> bool:
    """Whether there is a manifest and all that it names. If something is damaged, all is made again."""
    if not (output / MANIFEST).is_file():
        return False
    try:
        Corpus.open(output, "heldout")
        Corpus.open(output, "train").load_tokenizer()
    except BertkitError:
        (output / MANIFEST).unlink()
        return False
    return True


def _manifest(tokenizer: WordPiece, writer: ShardWriter, reader: UnitReader, hashes: Mapping[str, str]) -> Manifest:
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
