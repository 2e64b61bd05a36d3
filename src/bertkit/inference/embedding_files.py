"""Vectors of all texts of a file of any size, written so that they can be continued after an interruption.

The array is written in place, chunk by chunk, into a hidden file beside the output that already has the header of the
complete array. A record with a checksum is appended after every chunk (see ``partial_records``). Chunks begin at the
same rows whether the job was interrupted or not, so the result has the same bytes.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from bertkit.config.records import to_plain
from bertkit.errors import SAME_COMMAND, count_of, data_error, usage_error
from bertkit.inference.embedding import EmbeddingSettings
from bertkit.inference.embedding_store import (
    COLUMN,
    EmbeddingRecord,
    TextHash,
    check_suffix,
    hash_vectors,
    record_path,
    write_parquet,
)
from bertkit.inference.encoder_pipeline import EncoderPipeline, describe_vectors
from bertkit.inference.partial_records import keep_first, keep_intact, read_records
from bertkit.inference.text_column import TextColumn
from bertkit.machine.interrupts import Interrupted, Interrupts
from bertkit.storage.atomic import explain_writing, flush_to_disk, require_space, write_file
from bertkit.storage.checksums import fingerprint_of, sha256_of, write_checked
from bertkit.storage.json_log import format_record, open_log
from bertkit.storage.outputs import check_output, locked_partial, partial_path

Report = Callable[[int], None]
"""Called with the number of finished rows."""


def embed_file(
    pipeline: EncoderPipeline,
    source: TextColumn,
    output: Path,
    settings: EmbeddingSettings,
    *,
    start: Callable[[int, int], Report],
    overwrite: bool = False,
) -> EmbeddingRecord:
    """Write the vectors of all texts into ``output``, a ``.npy`` or ``.parquet``, and return their record.

    ``start`` is called with the numbers of rows and of empty texts, which are counted before anything is written, and
    returns what reports the progress. Raises a usage error if ``output`` is the input, exists without ``overwrite``, or
    is being written by another process; Interrupted on Ctrl-C or SIGTERM: finished rows are kept.
    """
    check_suffix(output)
    is_array = output.suffix.lower() == ".npy"
    if not is_array and source.name == COLUMN:
        raise usage_error(f'{source.path} has its texts in a column "{COLUMN}", as {output} has vectors. Write .npy.')
    _check_outputs(output, source, overwrite=overwrite, is_array=is_array)
    texts, empty = TextHash(), 0
    for text in source.texts():
        texts.add(text)
        empty += not text.strip()
    if not texts.count:
        raise data_error(f"{source.path} has no texts.")
    record = describe_vectors(pipeline, settings, rows=texts.count, text=source.name)
    record = replace(record, texts_sha256=texts.hexdigest())
    facts = json.dumps(to_plain(record), sort_keys=True)
    with locked_partial(output) as records:
        _check_outputs(output, source, overwrite=overwrite, is_array=is_array)
        data = output.with_name(f".bertkit-vectors-{output.name}")
        keep_intact(records, fingerprint_of([], sha256_of(source.path), source.path.name, pipeline.runtime.name, facts))
        with explain_writing(output):
            _write_vectors(pipeline, source, record, data, records, start(record.rows, empty))
            array = np.load(data, mmap_mode="r", allow_pickle=False)
            record = replace(record, vectors_sha256=hash_vectors(array))
            if is_array:
                write_checked(record_path(output), to_plain(record))
                data.replace(output)
                flush_to_disk(output.parent)
            else:
                write_file(output, lambda temporary: write_parquet(temporary, record, source.texts(), array))
                data.unlink()
        records.unlink()
    return record


def _check_outputs(output: Path, source: TextColumn, *, overwrite: bool, is_array: bool) -> None:
    check_output(output, inputs=[source.path], overwrite=overwrite)
    # A process that was killed between its last two steps has written the record and not yet the array.
    interrupted = partial_path(output).exists()
    if is_array:
        check_output(record_path(output), inputs=[source.path], overwrite=overwrite or interrupted)


def _write_vectors(
    pipeline: EncoderPipeline, source: TextColumn, record: EmbeddingRecord, data: Path, records: Path, report: Report
) -> None:
    """Compute the rows that ``data`` does not have yet."""
    row_bytes = 4 * record.dimension
    data.touch()
    with data.open("rb+") as file:
        done = _keep_rows(file, _header(record), row_bytes, records)
        require_space(data.parent, (record.rows - done) * row_bytes)
        report(done)
        with open_log(records) as log, Interrupts() as interrupts:
            for vectors in pipeline.stream_vectors(islice(source.texts(), done, None), record.settings):
                block = vectors.astype("<f4", copy=False).tobytes()
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
                log.write(format_record({"rows": len(vectors), "vectors_crc32": zlib.crc32(block)}))
                log.flush()
                done += len(vectors)
                report(done)
                if interrupts.requested and done < record.rows:
                    stopped = f"stopped after {count_of(done, 'row')}. {SAME_COMMAND}"
                    raise Interrupted(interrupts.requested, stopped)
    if done != record.rows:
        raise data_error(f"{source.path} has changed while it was read. Repeat the command.")


def _header(record: EmbeddingRecord) -> bytes:
    """The beginning of the complete array in NumPy's format."""
    header = BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (record.rows, record.dimension)}
    np.lib.format.write_array_header_1_0(header, shape)
    return header.getvalue()


def _keep_rows(file: IO[bytes], header: bytes, row_bytes: int, records: Path) -> int:
    """Truncate the array and its records after the last chunk that is intact in both, and count the rows up to it."""
    rows = chunks = 0
    if file.read(len(header)) == header:
        for record in read_records(records):
            block = file.read(record["rows"] * row_bytes)
            if len(block) != record["rows"] * row_bytes or zlib.crc32(block) != record["vectors_crc32"]:
                break
            rows, chunks = rows + record["rows"], chunks + 1
    keep_first(records, chunks)
    file.seek(0)
    file.write(header)
    file.seek(len(header) + rows * row_bytes)
    file.truncate()
    return rows
