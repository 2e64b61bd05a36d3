"""From text files to a DATA folder of token shards.

One process reads and cuts the text into units; others find sentences and tokenize; the first puts the results
together in order. Units depend on the text alone, so the shards are the same bytes whatever the number of
workers. A finished shard is recorded beside itself: after a crash the same command goes on behind it.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit import config
from bertkit.data._writer import ShardWriter
from bertkit.data.shards import MANIFEST, Manifest, read_manifest
from bertkit.data.sources import Piece, ReadCounts, Reading, read_pieces
from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.storage import read_json, remove_temporaries, sha256_of, write_json
from bertkit.text.sentences import split_sentences
from bertkit.text.wordpiece import WordPiece

Report = Callable[[int, int], None]
"""Hears (bytes of input done, bytes in all)."""

JOB = "job.json"
_UNIT_CHARACTERS = 1_000_000
_SMALL_INPUT = 4_000_000
_REMEMBERED_DOCUMENTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """Pieces for one worker, with documents numbered through the whole corpus."""

    pieces: tuple[Piece, ...]
    done_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPiece:
    """``tokens`` (N,) of a piece of document ``number`` and the lengths (S,) of its sentences."""

    number: int
    tokens: NDArray[Any]
    sentence_lengths: NDArray[np.int64]
    unknown: int


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
    _check(files, heldout)
    job = {
        "tokenizer": tokenizer.fingerprint,
        "files": {str(file): file.stat().st_size for file in files},
        "heldout": heldout,
        "reading": config.to_json(reading),
    }
    if _is_finished(output, job):
        return read_manifest(output)
    tokenizer.save(output / "tokenizer")
    writer = ShardWriter.resume(
        output, heldout=heldout, dtype=np.uint16 if tokenizer.vocab_size <= 65536 else np.uint32
    )
    reader = _Reader(files, reading)
    total = sum(file.stat().st_size for file in files)
    pending = (unit for number, unit in enumerate(reader.units()) if number >= writer.units)
    for unit, pieces in _tokenize_all(pending, tokenizer, _worker_count(workers, total)):
        writer.add(pieces)
        if report is not None:
            report(min(unit.done_bytes, total), total)
    writer.finish()
    manifest = Manifest(
        tokenizer=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        shards=tuple(writer.records),
        tokens=sum(record.tokens for record in writer.records),
        sentences=sum(record.sentences for record in writer.records),
        documents=writer.documents,
        unknown_tokens=writer.unknown_tokens,
        empty_documents=reader.documents - writer.documents,
        duplicate_documents=reader.duplicates,
        replaced_characters=reader.counts.replaced_characters,
        sources={str(file): sha256_of(file) for file in files},
    )
    if not manifest.tokens:
        raise data_error(f"there is no text in {_names(files)}: every document is empty or blank.")
    write_json(output / MANIFEST, config.to_json(manifest))
    writer.forget_journal()
    return manifest


def _check(files: Sequence[Path], heldout: float) -> None:
    if not files:
        raise usage_error("name at least one text file to prepare.")
    for file in files:
        if not file.is_file():
            raise data_error(f"no file at {file}.")
    if not 0 <= heldout < 1:
        raise usage_error(f"--heldout is {heldout}; it is a share of the documents, from 0 to below 1.")


def _names(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} other files"


def _is_finished(output: Path, job: dict[str, Any]) -> bool:
    """Whether ``output`` has this job's manifest; marks the folder as this job's when it is new."""
    if (output / JOB).is_file():
        if read_json(output / JOB) != job:
            raise usage_error(f"{output} holds other files or options. Choose another -o folder.")
        remove_temporaries(output)
        return (output / MANIFEST).is_file()
    try:
        output.mkdir(parents=True, exist_ok=True)
        occupied = any(output.iterdir())
    except OSError as error:
        raise BertkitError(f"cannot write to {output}: {error.strerror}. Choose another -o folder.") from error
    if occupied:
        raise usage_error(f"{output} is not empty and was not made by bertkit prepare. Choose another -o folder.")
    write_json(output / JOB, job)
    return False


class _Reader:
    """The units of all files in order, counting documents, exact duplicates and repairs on the way."""

    def __init__(self, files: Sequence[Path], reading: Reading) -> None:
        self.files = files
        self.reading = reading
        self.counts = ReadCounts()
        self.documents = 0
        self.duplicates = 0
        self._seen: set[bytes] = set()

    def units(self) -> Iterator[Unit]:
        """About a million characters each. A small document is never cut, a large one is several pieces."""
        held: list[Piece] = []
        size, done = 0, 0
        for file in self.files:
            for piece in self._number(read_pieces(file, self.reading, self.counts)):
                if size and size + len(piece.text) > _UNIT_CHARACTERS:
                    yield Unit(tuple(held), done)
                    held, size = [], 0
                held.append(piece)
                size += len(piece.text)
            done += file.stat().st_size
        if held:
            yield Unit(tuple(held), done)

    def _number(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        first = self.documents
        digest, current = hashlib.blake2b(digest_size=8), -1
        for piece in pieces:
            if piece.number != current:
                self._remember(digest.digest(), current >= 0)
                digest, current = hashlib.blake2b(digest_size=8), piece.number
                self.documents = first + current + 1
            digest.update(piece.text.encode("utf-8", "surrogatepass"))
            yield Piece(first + piece.number, piece.text, piece.is_lines)
        self._remember(digest.digest(), current >= 0)

    def _remember(self, digest: bytes, is_document: bool) -> None:
        if is_document:
            self.duplicates += digest in self._seen
            if len(self._seen) < _REMEMBERED_DOCUMENTS:
                self._seen.add(digest)


def _worker_count(workers: int | None, total: int) -> int:
    """One for small input, where starting processes costs more than it saves."""
    if workers is None:
        return (os.cpu_count() or 1) if total > _SMALL_INPUT else 1
    if workers < 1:
        raise usage_error(f"--workers is {workers}; it must be 1 or more.")
    return workers


def _tokenize_all(
    units: Iterable[Unit], tokenizer: WordPiece, workers: int
) -> Iterator[tuple[Unit, list[TokenizedPiece]]]:
    """Units with their results, in order; never more than a few units in flight, whatever the input."""
    if workers == 1:
        for unit in units:
            yield unit, tokenize_unit(unit, tokenizer)
        return
    waiting: deque[tuple[Unit, Future[list[TokenizedPiece]]]] = deque()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start_worker, (tokenizer.to_json(),)) as pool:
        for unit in units:
            waiting.append((unit, pool.submit(_tokenize_in_worker, unit)))
            if len(waiting) > 2 * workers:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def tokenize_unit(unit: Unit, tokenizer: WordPiece) -> list[TokenizedPiece]:
    """Sentences and their tokens, for every piece of a unit; sentences without a token are left out."""
    split = [piece.text.splitlines() if piece.is_lines else split_sentences(piece.text) for piece in unit.pieces]
    encoded = iter(tokenizer.encode_ids_batch([sentence for sentences in split for sentence in sentences]))
    results = []
    for piece, sentences in zip(unit.pieces, split, strict=True):
        ids = [ids for ids in islice(encoded, len(sentences)) if ids]
        tokens = np.array([number for sentence in ids for number in sentence], dtype=np.int64)
        lengths = np.array([len(sentence) for sentence in ids], dtype=np.int64)
        unknown = int((tokens == tokenizer.unk_id).sum())
        results.append(TokenizedPiece(piece.number, tokens, lengths, unknown))
    return results


_worker: dict[str, WordPiece] = {}


def _start_worker(tokenizer: str) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _worker["tokenizer"] = WordPiece.from_json(tokenizer)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tokenize_in_worker(unit: Unit) -> list[TokenizedPiece]:
    return tokenize_unit(unit, _worker["tokenizer"])
