"""Writing tokenized blocks as shards, with a journal next to them, so that a crash loses at most one shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.config.records import from_plain, to_plain
from bertkit.data.blocks import choose_limit
from bertkit.data.shards import CorpusSplit, ShardRecord, verify_shard, write_shard
from bertkit.data.tokenizing import TokenizedBlock
from bertkit.errors import BertkitError
from bertkit.storage.atomic import explain_writing
from bertkit.storage.checksums import read_record, write_checked

_SHARD_TOKENS = 8_000_000
_SHARD_SENTENCES = 2_000_000
_JOURNAL = "journal-{:05}.json"


@dataclass(frozen=True, kw_only=True)
class _State:
    """The state of the writer after a shard: the number of work units so far, and the totals.

    ``last_document`` may continue in the next shard. ``limit`` is that of the keys of held-out blocks.
    """

    limit: int
    work_units: int = 0
    unknown_tokens: int = 0
    documents: int = 0
    last_document: int = -1


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """What the journal has for one shard of each split."""

    state: _State
    records: tuple[ShardRecord, ...]


class ShardWriter:
    """Writes blocks into shards of about eight million tokens, document by document, with train and held out apart.

    A block is held out if its key is below a limit, which ``choose_limit`` takes from the blocks of the first shard.
    Every held-out block is a document of its split, and divides its document in train: the sentences before and after
    it are not consecutive.
    """

    def __init__(self, folder: Path, *, heldout: float) -> None:
        self.folder = folder
        self.heldout = heldout
        self.records: list[ShardRecord] = []
        self._state: _State | None = None
        self._units = 0
        self._number = 0
        self._waiting: list[tuple[int, TokenizedBlock]] = []
        self._size = 0.0

    @classmethod
    def resume(cls, folder: Path, *, heldout: float) -> ShardWriter:
        """A writer that continues after the last undamaged shard in the journal of ``folder``."""
        writer = cls(folder, heldout=heldout)
        while (path := folder / _JOURNAL.format(writer._number)).is_file():
            try:
                entry = from_plain(_Entry, read_record(path), source=str(path))
                for record in entry.records:
                    verify_shard(folder, record)
            except BertkitError:
                break  # this shard and those after it are written again
            writer._accept(entry)
        return writer

    @property
    def units(self) -> int:
        """How many work units were added."""
        return self._units

    @property
    def documents(self) -> int:
        """Documents in finished shards; those without a token do not count."""
        return self._state.documents if self._state else 0

    @property
    def unknown_tokens(self) -> int:
        """Unknown tokens in finished shards."""
        return self._state.unknown_tokens if self._state else 0

    def add(self, blocks: Iterable[tuple[int, TokenizedBlock]]) -> None:
        """Add the blocks of the next work unit, each with the number of its document.

        A document across the boundary of two shards is a document in each.
        """
        self._units += 1
        for number, block in blocks:
            self._waiting.append((number, block))
            # Offsets take four times the bytes of tokens, so a shard is also full after many short sentences.
            self._size += len(block.tokens) / _SHARD_TOKENS + len(block.sentence_lengths) / _SHARD_SENTENCES
        if self._size >= 1:
            self._flush()

    def finish(self) -> None:
        """Write the blocks that are left."""
        if self._waiting:
            self._flush()

    def _flush(self) -> None:
        numbers, blocks = zip(*self._waiting, strict=True)
        state = self._state or _State(
            limit=choose_limit([block.key for block in blocks], [len(block.tokens) for block in blocks], self.heldout)
        )
        state = replace(
            state,
            work_units=self._units,
            unknown_tokens=state.unknown_tokens + sum(block.unknown for block in blocks),
            documents=state.documents + len({*numbers} - {state.last_document}),
            last_document=numbers[-1],
        )
        documents: dict[CorpusSplit, list[list[TokenizedBlock]]] = {"train": [], "heldout": []}
        for (_, split, _), document in groupby(self._waiting, partial(_document_of, limit=state.limit)):
            documents[split].append([block for _, block in document])
        records = [record for split, each in documents.items() for record in self._write(split, each)]
        entry = _Entry(state=state, records=tuple(records))
        # After the shards: an entry of the journal names complete files only.
        write_checked(self.folder / _JOURNAL.format(self._number), to_plain(entry))
        self._accept(entry)

    def _write(self, split: CorpusSplit, documents: Sequence[Sequence[TokenizedBlock]]) -> Iterable[ShardRecord]:
        if not documents:
            return
        name = f"{split}-{self._number:05}.safetensors"
        tokens = np.concatenate([block.tokens for document in documents for block in document])
        lengths = np.concatenate([block.sentence_lengths for document in documents for block in document])
        sentences = [sum(len(block.sentence_lengths) for block in document) for document in documents]
        digest = write_shard(self.folder / name, tokens, _offsets(lengths), _offsets(sentences))
        yield ShardRecord(
            file=name,
            split=split,
            sha256=digest,
            tokens=len(tokens),
            sentences=len(lengths),
            documents=len(documents),
        )

    def _accept(self, entry: _Entry) -> None:
        self._state, self._units = entry.state, entry.state.work_units
        self.records += entry.records
        self._number += 1
        self._waiting, self._size = [], 0.0


def _document_of(numbered: tuple[int, TokenizedBlock], limit: int) -> tuple[int, CorpusSplit, int]:
    """The document of the shards that a block belongs to, with its split."""
    number, block = numbered
    return (number, "heldout", block.key) if block.key < limit else (number, "train", 0)


def has_journal(folder: Path) -> bool:
    """Whether ``folder`` has finished shards that no manifest lists yet."""
    return any(folder.glob(_JOURNAL.replace("{:05}", "*")))


def forget_journal(folder: Path) -> None:
    """Delete the journal, whose content is in the manifest now."""
    for path in folder.glob(_JOURNAL.replace("{:05}", "*")):
        with explain_writing(path):
            path.unlink()


def _offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
