"""Writing tokenized chunks as shards, with a journal next to them, so that a crash loses at most one shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit import config
from bertkit.data.document_hash import KEYS
from bertkit.data.shards import ShardRecord, Split, verify_shard, write_shard
from bertkit.data.tokenizing import TokenizedChunk
from bertkit.errors import BertkitError
from bertkit.storage.atomic import explain_writing, read_json, write_json

_SHARD_TOKENS = 8_000_000
_SHARD_SENTENCES = 2_000_000
_LEAST_HELD_OUT = 2
_JOURNAL = "journal-{:05}.json"


@dataclass(frozen=True, kw_only=True)
class _State:
    """The state of the writer after a shard: the number of work units so far, and the totals.

    ``last_document`` may continue in the next shard; it stays in the same split.
    """

    units: int = 0
    unknown_tokens: int = 0
    documents: int = 0
    heldout_documents: int = 0
    last_document: int = -1
    last_split: Split = "train"


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """What the journal has for one shard of each split."""

    state: _State
    records: tuple[ShardRecord, ...]


class ShardWriter:
    """Writes chunks into shards of about eight million tokens, document by document, with train and held out apart.

    A document is held out if its key is in the lowest ``heldout`` of all keys. That depends on its text alone, so all
    copies of a document are in one split. If this holds out fewer than two documents (fewer than one if there are
    only two or three), the documents with the lowest keys in the first shard are held out as well. At least one
    document is always left for training.
    """

    def __init__(self, folder: Path, *, heldout: float) -> None:
        self.folder = folder
        self.heldout = heldout
        self.records: list[ShardRecord] = []
        self._state = _State()
        self._units = 0
        self._number = 0
        self._waiting: list[TokenizedChunk] = []
        self._size = 0.0

    @classmethod
    def resume(cls, folder: Path, *, heldout: float) -> ShardWriter:
        """A writer that continues after the last undamaged shard in the journal of ``folder``."""
        writer = cls(folder, heldout=heldout)
        while (path := folder / _JOURNAL.format(writer._number)).is_file():
            try:
                entry = config.from_json(_Entry, read_json(path), source=str(path))
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
        return self._state.documents

    @property
    def unknown_tokens(self) -> int:
        """Unknown tokens in finished shards."""
        return self._state.unknown_tokens

    def add(self, chunks: Iterable[TokenizedChunk]) -> None:
        """Add the chunks of the next work unit. A document across the boundary of two shards is a document in each."""
        self._units += 1
        for chunk in chunks:
            if len(chunk.tokens):
                self._waiting.append(chunk)
                # Offsets take four times the bytes of tokens, so many short sentences also fill a shard.
                self._size += len(chunk.tokens) / _SHARD_TOKENS + len(chunk.sentence_lengths) / _SHARD_SENTENCES
        if self._size >= 1:
            self._flush()

    def finish(self) -> None:
        """Write the chunks that are left."""
        if self._waiting:
            self._flush()

    def _flush(self) -> None:
        # Reversed, so that the first chunk of a document, written last, sets its key.
        keys = {chunk.number: chunk.key for chunk in reversed(self._waiting)}
        continued = keys.pop(self._state.last_document, None)
        heldout = self._choose(keys)
        if continued is not None and self._state.last_split == "heldout":
            heldout.add(self._state.last_document)
        train = [chunk for chunk in self._waiting if chunk.number not in heldout]
        held = [chunk for chunk in self._waiting if chunk.number in heldout]
        last = self._waiting[-1].number
        state = replace(
            self._state,
            units=self._units,
            unknown_tokens=self._state.unknown_tokens + sum(chunk.unknown for chunk in self._waiting),
            documents=self._state.documents + len(keys),
            heldout_documents=self._state.heldout_documents + len(heldout & keys.keys()),
            last_document=last,
            last_split="heldout" if last in heldout else "train",
        )
        records = [*self._write("train", train), *self._write("heldout", held)]
        entry = _Entry(state=state, records=tuple(records))
        # After the shards: an entry of the journal names complete files only.
        write_json(self.folder / _JOURNAL.format(self._number), config.to_json(entry))
        self._accept(entry)

    def _choose(self, keys: dict[int, int]) -> set[int]:
        """The documents to hold out, of those that begin in this shard; ``keys`` has the key of each."""
        if not self.heldout:
            return set()
        ranked = sorted(keys, key=lambda number: (keys[number], number))
        count = sum(key < self.heldout * KEYS for key in keys.values())
        least = min(_LEAST_HELD_OUT, (self._state.documents + len(keys)) // 2) - self._state.heldout_documents
        # One document must be left for training, unless an earlier shard has one.
        has_train = self._state.documents > self._state.heldout_documents
        return set(ranked[: min(max(count, least), len(ranked) - (not has_train))])

    def _write(self, split: Split, chunks: Sequence[TokenizedChunk]) -> Iterable[ShardRecord]:
        if not chunks:
            return
        name = f"{split}-{self._number:05}.safetensors"
        tokens = np.concatenate([chunk.tokens for chunk in chunks])
        lengths = np.concatenate([chunk.sentence_lengths for chunk in chunks])
        documents = [
            sum(len(chunk.sentence_lengths) for chunk in document)
            for _, document in groupby(chunks, key=attrgetter("number"))
        ]
        digest = write_shard(self.folder / name, tokens, _offsets(lengths), _offsets(documents))
        yield ShardRecord(
            file=name,
            split=split,
            sha256=digest,
            tokens=len(tokens),
            sentences=len(lengths),
            documents=len(documents),
        )

    def _accept(self, entry: _Entry) -> None:
        self._state, self._units = entry.state, entry.state.units
        self.records += entry.records
        self._number += 1
        self._waiting, self._size = [], 0.0


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
