"""Tokenized pieces into shards, with a journal beside them so that a crash costs one shard at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bertkit import config
from bertkit.data.shards import ShardRecord, Split, verify_shard, write_shard
from bertkit.errors import BertkitError
from bertkit.storage import read_json, sha256_of, write_json

_SHARD_TOKENS = 16_000_000
_ALWAYS_HELD_OUT = (3, 7)
_JOURNAL = "journal-{number:05}.json"


class Tokenized(Protocol):
    """A piece of document ``number``: its tokens (N,) and the lengths (S,) of its sentences."""

    @property
    def number(self) -> int: ...

    @property
    def tokens(self) -> NDArray[Any]: ...

    @property
    def sentence_lengths(self) -> NDArray[np.int64]: ...

    @property
    def unknown(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """What the journal says after a shard: the units behind it, and the totals so far."""

    units: int
    unknown_tokens: int
    documents: int
    last_documents: dict[str, int]
    records: tuple[ShardRecord, ...]


class _Builder:
    """The growing arrays of one shard of one split."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = dtype
        self.tokens: list[NDArray[Any]] = []
        self.sentence_lengths: list[NDArray[np.int64]] = []
        self.document_sizes: list[int] = []
        self.last_document = -1

    def add(self, piece: Tokenized) -> None:
        self.tokens.append(piece.tokens.astype(self.dtype))
        self.sentence_lengths.append(piece.sentence_lengths)
        if piece.number == self.last_document:
            self.document_sizes[-1] += len(piece.sentence_lengths)
        else:
            self.document_sizes.append(len(piece.sentence_lengths))
        self.last_document = piece.number

    @property
    def size(self) -> int:
        return sum(len(tokens) for tokens in self.tokens)

    def write(self, folder: Path, name: str, split: Split) -> ShardRecord:
        tokens = np.concatenate(self.tokens)
        lengths = np.concatenate(self.sentence_lengths)
        write_shard(folder / name, tokens, _offsets(lengths), _offsets(self.document_sizes))
        return ShardRecord(
            file=name,
            split=split,
            sha256=sha256_of(folder / name),
            tokens=len(tokens),
            sentences=len(lengths),
            documents=len(self.document_sizes),
        )


def _offsets(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


class ShardWriter:
    """Puts pieces into shards of about sixteen million tokens, document by document, train and held out apart."""

    def __init__(self, folder: Path, *, heldout: float, dtype: DTypeLike) -> None:
        self.folder = folder
        self.dtype = dtype
        self.units = 0
        self.unknown_tokens = 0
        self.documents = 0
        self.records: list[ShardRecord] = []
        self._every = round(1 / heldout) if heldout else 0
        self._number = 0
        self._builders: dict[Split, _Builder] = {}
        self._last_documents: dict[str, int] = {}

    @classmethod
    def resume(cls, folder: Path, *, heldout: float, dtype: DTypeLike) -> ShardWriter:
        """A writer that stands behind the last good shard that the journal of ``folder`` knows."""
        writer = cls(folder, heldout=heldout, dtype=dtype)
        while (path := folder / _JOURNAL.format(number=writer._number)).is_file():
            try:
                entry = config.from_json(_Entry, read_json(path), source=str(path))
                for record in entry.records:
                    verify_shard(folder, record)
            except BertkitError:
                break
            writer.units, writer.unknown_tokens = entry.units, entry.unknown_tokens
            writer.documents, writer._last_documents = entry.documents, dict(entry.last_documents)
            writer.records += entry.records
            writer._number += 1
        return writer

    def add(self, pieces: Sequence[Tokenized]) -> None:
        """Take the pieces of the next unit. A document across the border of two shards is one in each."""
        for piece in pieces:
            if len(piece.tokens):
                split = self._split(piece.number)
                self._builders.setdefault(split, _Builder(self.dtype)).add(piece)
                self.documents += self._last_documents.get(split) != piece.number
                self._last_documents[split] = piece.number
                self.unknown_tokens += piece.unknown
        self.units += 1
        if sum(builder.size for builder in self._builders.values()) >= _SHARD_TOKENS:
            self._flush()

    def _split(self, document: int) -> Split:
        if not self._every:
            return "train"
        held_out = document in _ALWAYS_HELD_OUT or document % self._every == self._every // 2
        return "heldout" if held_out else "train"

    def finish(self) -> None:
        """Write what is left."""
        if self._builders:
            self._flush()

    def _flush(self) -> None:
        splits: tuple[Split, ...] = ("train", "heldout")
        records = [
            self._builders[split].write(self.folder, f"{split}-{self._number:05}.safetensors", split)
            for split in splits
            if split in self._builders
        ]
        entry = _Entry(
            units=self.units,
            unknown_tokens=self.unknown_tokens,
            documents=self.documents,
            last_documents=self._last_documents,
            records=tuple(records),
        )
        write_json(self.folder / _JOURNAL.format(number=self._number), config.to_json(entry))
        self.records += records
        self._number += 1
        self._builders = {}

    def forget_journal(self) -> None:
        """The manifest says it all now."""
        for path in self.folder.glob(_JOURNAL.format(number=0).replace("00000", "*")):
            path.unlink()
