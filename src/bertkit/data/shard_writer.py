"""Tokenized pieces into shards, with a journal beside them so that a crash costs one shard at most."""

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
    """Where the writer stands behind a shard: the units in it and before it, and the totals so far.

    ``last_document`` may go on in the next shard, in the same split.
    """

    units: int = 0
    unknown_tokens: int = 0
    documents: int = 0
    heldout_documents: int = 0
    last_document: int = -1
    last_split: Split = "train"


@dataclass(frozen=True, kw_only=True)
class _Entry:
    state: _State
    records: tuple[ShardRecord, ...]


class ShardWriter:
    """Puts pieces into shards of about eight million tokens, document by document, train and held out apart.

    A document is held out if its key is in the lowest ``heldout`` of all keys: that depends on its text alone, so that
    copies stay together. Where this holds out fewer than two documents, or fewer than one of two or three, those
    with the lowest keys in the first shard are held out as well; one document is always left to train on.
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
        """A writer that stands behind the last good shard that the journal of ``folder`` knows."""
        writer = cls(folder, heldout=heldout)
        while (path := folder / _JOURNAL.format(writer._number)).is_file():
            try:
                entry = config.from_json(_Entry, read_json(path), source=str(path))
                for record in entry.records:
                    verify_shard(folder, record)
            except BertkitError:
                break  # what is damaged is made again
            writer._accept(entry)
        return writer

    @property
    def units(self) -> int:
        """How many units were taken."""
        return self._units

    @property
    def documents(self) -> int:
        """Documents that have a token, in finished shards."""
        return self._state.documents

    @property
    def unknown_tokens(self) -> int:
        """Tokens that are the unknown piece, in finished shards."""
        return self._state.unknown_tokens

    def add(self, pieces: Iterable[TokenizedChunk]) -> None:
        """Take the pieces of the next unit. A document across the border of two shards is one in each."""
        self._units += 1
        for piece in pieces:
            if len(piece.tokens):
                self._waiting.append(piece)
                self._size += len(piece.tokens) / _SHARD_TOKENS + len(piece.sentence_lengths) / _SHARD_SENTENCES
        if self._size >= 1:
            self._flush()

    def finish(self) -> None:
        """Write what is left."""
        if self._waiting:
            self._flush()

    def _flush(self) -> None:
        keys = {piece.number: piece.key for piece in reversed(self._waiting)}  # of the first piece of each
        carried = keys.pop(self._state.last_document, None)
        heldout = self._choose(keys)
        if carried is not None and self._state.last_split == "heldout":
            heldout.add(self._state.last_document)
        train = [piece for piece in self._waiting if piece.number not in heldout]
        held = [piece for piece in self._waiting if piece.number in heldout]
        last = self._waiting[-1].number
        state = replace(
            self._state,
            units=self._units,
            unknown_tokens=self._state.unknown_tokens + sum(piece.unknown for piece in self._waiting),
            documents=self._state.documents + len(keys),
            heldout_documents=self._state.heldout_documents + len(heldout & keys.keys()),
            last_document=last,
            last_split="heldout" if last in heldout else "train",
        )
        records = [*self._write("train", train), *self._write("heldout", held)]
        entry = _Entry(state=state, records=tuple(records))
        write_json(self.folder / _JOURNAL.format(self._number), config.to_json(entry))
        self._accept(entry)

    def _choose(self, keys: dict[int, int]) -> set[int]:
        """Which of the documents that begin in this shard are held out."""
        if not self.heldout:
            return set()
        ranked = sorted(keys, key=lambda number: (keys[number], number))
        count = sum(key < self.heldout * KEYS for key in keys.values())
        least = min(_LEAST_HELD_OUT, (self._state.documents + len(keys)) // 2) - self._state.heldout_documents
        has_train = self._state.documents > self._state.heldout_documents
        return set(ranked[: min(max(count, least), len(ranked) - (not has_train))])

    def _write(self, split: Split, pieces: Sequence[TokenizedChunk]) -> Iterable[ShardRecord]:
        if not pieces:
            return
        name = f"{split}-{self._number:05}.safetensors"
        tokens = np.concatenate([piece.tokens for piece in pieces])
        lengths = np.concatenate([piece.sentence_lengths for piece in pieces])
        documents = [
            sum(len(piece.sentence_lengths) for piece in document)
            for _, document in groupby(pieces, key=attrgetter("number"))
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
    """Whether there are finished shards in ``folder`` and no manifest yet to name them."""
    return any(folder.glob(_JOURNAL.replace("{:05}", "*")))


def forget_journal(folder: Path) -> None:
    """The manifest says it all now."""
    for path in folder.glob(_JOURNAL.replace("{:05}", "*")):
        with explain_writing(path):
            path.unlink()


def _offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
