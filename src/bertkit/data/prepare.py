"""From text files to a DATA folder of token shards.

One process divides the text into work units; worker processes read them, find sentences and tokenize them; the first
process writes the results in order. A unit is a range of bytes of a plain file; the bytes of a compressed one are
unpacked in the first process. Units depend on the text alone, so the shards have the same bytes for any number of
workers. Every finished shard is recorded in a journal: after a crash the same command continues after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

from bertkit.config.records import to_plain
from bertkit.contracts import SubwordTokenizer
from bertkit.data.cleaning import Cleaning, Dropped, find_dropped
from bertkit.data.output_folder import emptied_by_errors, lock_output, start_job
from bertkit.data.remote_output import RemoteOutput
from bertkit.data.shard_writer import ShardWriter, forget_journal
from bertkit.data.shards import TOKENIZER, DroppedRecord, Manifest, read_manifest, write_manifest
from bertkit.data.sources import ReadOptions
from bertkit.data.tokenizing import TokenizerFile
from bertkit.data.unit_worker import UnitWorker, WorkUnit
from bertkit.data.work_units import UnitReader
from bertkit.data.workers import work_all
from bertkit.errors import data_error, usage_error
from bertkit.formats.text_files import check_text_file
from bertkit.machine.processor import count_cores
from bertkit.options.job import Engine
from bertkit.storage.checksums import sha256_of
from bertkit.storage.ray_cluster import connect
from bertkit.storage.remote import RemotePath
from bertkit.text.tokenizer_files import write_tokenizer

Report = Callable[[int, int], None]
"""Called with (bytes of input done, bytes in total); bytes that are read in two passes count twice."""

_BYTES_PER_WORKER = 2_000_000


def prepare(
    files: Sequence[Path],
    *,
    tokenizer: SubwordTokenizer,
    output: Path,
    workers: int | None = None,
    engine: Engine = "local",
    heldout: float = 0.01,
    reading: ReadOptions | None = None,
    cleaning: Cleaning | None = None,
    report: Report | None = None,
) -> Manifest:
    """Prepare ``files`` into the folder ``output``; a share of ``heldout`` of the tokens is kept for evaluation.

    A folder that the same command has finished is left as it is, and one that it has begun is completed. A folder with
    other content is refused with a usage error. An error before the first shard is finished leaves nothing.
    Output with a URL is written on this machine first, and uploaded.
    """
    reading, cleaning = reading or ReadOptions(), cleaning or Cleaning()
    _check(files)
    remote = RemoteOutput(output) if isinstance(output, RemotePath) else None
    if engine == "ray":
        _require_cluster(remote)
    output = output if remote is None else remote.folder
    with lock_output(output), nullcontext() if remote is None else remote.uploading(), ExitStack() as stack:
        # Input that has changed since an interruption makes this another job, which ``start_job`` refuses.
        hashes = {str(file): _hash(file) for file in files}
        job = _job(hashes, tokenizer, heldout, reading, cleaning)
        if remote is not None and (finished_before := remote.begin(job)):
            return finished_before
        if not start_job(output, job):
            return read_manifest(output)
        stack.enter_context(emptied_by_errors(output))
        write_tokenizer(output / TOKENIZER, tokenizer.save)
        writer = ShardWriter.resume(output, heldout=heldout)
        advance = report or (lambda done, total: None)
        size = sum(file.stat().st_size for file in files)
        total, before = cleaning.passes * size, (cleaning.passes - 1) * size
        dropped = find_dropped(files, reading, cleaning, lambda done: advance(done, total))
        reader = UnitReader(files, reading, heldout=heldout, dropped=dropped.numbers)
        workers = workers or (_default_workers(reader.total_bytes) if engine == "local" else None)
        units = _units_to_do(reader, writer.units)
        work = UnitWorker(_file_of(tokenizer, output), dropped.lines)
        for unit, result in work_all(units, work, workers, engine):
            blocks = reader.accept(unit, result)
            if unit.tokenized:
                writer.add(blocks)
            advance(before + unit.done_bytes, total)
        writer.finish()
        # Checked last, because text of control characters only is not blank, but gives no token.
        if not writer.records:
            reason = "dropped, empty or blank" if cleaning.describe() else "empty or blank"
            raise data_error(f"there is no text in {_names(files)}: every document is {reason}.")
        manifest = _manifest(tokenizer, writer, reader, dropped, hashes)
        write_manifest(output, manifest)
        forget_journal(output)
        return manifest


def _units_to_do(reader: UnitReader, finished: int) -> Iterator[WorkUnit]:
    """All units. After a restart those of finished shards are read again, because their documents must be numbered and
    hashed, but not tokenized again."""
    return (replace(unit, tokenized=at >= finished) for at, unit in enumerate(reader.units()))


def _file_of(tokenizer: SubwordTokenizer, output: Path) -> TokenizerFile:
    file = output / TOKENIZER / "tokenizer.json"
    return TokenizerFile(file, tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens)


def _check(files: Sequence[Path]) -> None:
    if not files:
        raise usage_error("name at least one text file to prepare, such as texts.jsonl.")
    for file, times in Counter(file if isinstance(file, RemotePath) else file.resolve() for file in files).items():
        if times > 1:
            raise usage_error(f"{file} is named {times} times; name it once.")
    for file in files:
        check_text_file(file)


def _require_cluster(remote: RemoteOutput | None) -> None:
    """Raise a usage error before anything is written if there is no cluster, or if its nodes cannot see the output."""
    if remote is not None:
        raise usage_error(f"--engine ray needs an output folder that all nodes see; {remote.target} is no folder.")
    connect()


def _names(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} other files"


def _hash(file: Path) -> str:
    try:
        return sha256_of(file)
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror or error}.") from error


def _default_workers(total_bytes: int) -> int:
    """One per core, and fewer for small input, where starting a worker takes longer than its work."""
    return max(1, min(count_cores(), total_bytes // _BYTES_PER_WORKER))


def _job(
    hashes: Mapping[str, str],
    tokenizer: SubwordTokenizer,
    heldout: float,
    reading: ReadOptions,
    cleaning: Cleaning,
) -> dict[str, object]:
    """Everything that the content of the shards depends on."""
    return {
        "files": [list(each) for each in hashes.items()],
        "tokenizer": tokenizer.fingerprint,
        "heldout": heldout,
        "reading": {**to_plain(reading), **cleaning.describe()},
    }


def _manifest(
    tokenizer: SubwordTokenizer,
    writer: ShardWriter,
    reader: UnitReader,
    dropped: Dropped,
    hashes: Mapping[str, str],
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
        dropped=DroppedRecord(duplicates=dropped.duplicates, overlaps=dropped.overlapping, lines=reader.dropped_lines),
    )
