"""The tensors of a TensorFlow checkpoint, version 2: ``NAME.index`` and ``NAME.data-00000-of-00001``.

The index is a sorted table from the name of a tensor to a ``BundleEntryProto``; its first entry, without a name, is the
``BundleHeaderProto`` (tensorflow/core/protobuf/tensor_bundle.proto). The data files have the tensors as plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertkit.checkpoint.crc32c import masked_crc32c
from bertkit.checkpoint.protobuf import Message, read_message
from bertkit.checkpoint.tensorflow_table import read_table
from bertkit.errors import data_error

MOST_INDEX_BYTES = 4_000_000
"""The largest index that is read. That of BERT-large with the moments of its optimizer has 0.1 MB."""

_MOST_DIMENSIONS = 8
_SIZE_LIMIT = 2**63
_STRING = 7
_DTYPES = {
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    9: torch.int64,
    10: torch.bool,
    14: torch.bfloat16,
    19: torch.float16,
}
"""tensorflow/core/framework/types.proto"""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a tensor is: ``size`` bytes from ``offset`` of the data file with the number ``shard``."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


class Bundle:
    """A checkpoint whose index was read. ``entries`` has every tensor by its name.

    Every inconsistency is a data error: nothing is read that the index and the files do not agree on.
    """

    def __init__(self, index: Path) -> None:
        self.index = index
        data = _read_index(index)
        try:
            table = read_table(data)
            header = read_message(table.pop(b"", b""))
            self._num_shards = header.number(1)
            self.entries = {name.decode(): _read_entry(read_message(value)) for name, value in table.items()}
            shards = _group(header, self.entries)
        except ValueError as error:
            raise data_error(f"{index} is damaged: {error}.") from error
        for shard, entries in shards.items():
            _check_places(self._data_file(shard), entries)

    def read(self, names: Iterable[str]) -> dict[str, Tensor]:
        """The tensors with these names. Those of texts and other types than numbers are a data error."""
        tensors = {}
        for name in names:
            entry = self.entries[name]
            if entry.dtype not in _DTYPES:
                raise data_error(f"{self.index}: {name} has the type {entry.dtype}, which is not one of numbers.")
            dtype, numbers = _DTYPES[entry.dtype], torch.from_numpy(self._read_bytes(name))
            # torch refuses to view an empty tensor of bytes as one of another type.
            tensors[name] = (
                numbers.view(dtype).view(entry.shape) if entry.size else torch.empty(entry.shape, dtype=dtype)
            )
        return tensors

    def verify(self, names: Iterable[str]) -> None:
        """Compare tensors with their checksums; those of texts have one of another kind, and are left out."""
        for name in names:
            if self.entries[name].dtype != _STRING:
                self._read_bytes(name)

    def _data_file(self, shard: int) -> Path:
        return self.index.with_name(f"{self.index.stem}.data-{shard:05}-of-{self._num_shards:05}")

    def _read_bytes(self, name: str) -> NDArray[np.uint8]:
        entry = self.entries[name]
        file = self._data_file(entry.shard)
        data = np.empty(entry.size, dtype=np.uint8)
        try:
            with file.open("rb") as opened:
                opened.seek(entry.offset)
                count = opened.readinto(data.data)
        except OSError as error:
            raise data_error(f"{file} cannot be read: {error.strerror}.") from error
        if count != entry.size or masked_crc32c(data.data) != entry.checksum:
            raise data_error(f"{file} is damaged: the checksum of {name} is wrong. Use another copy of the checkpoint.")
        return data


def _read_index(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_INDEX_BYTES + 1)
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror}.") from error
    if len(data) > MOST_INDEX_BYTES:
        raise data_error(f"{file} has more than {MOST_INDEX_BYTES:,} bytes: it is not the index of a BERT.")
    return data


def _read_entry(message: Message) -> Entry:
    (shape,) = message.messages(2) or [read_message(b"")]
    entry = Entry(
        dtype=message.number(1),
        shape=tuple(dimension.number(1) for dimension in shape.messages(2)),
        shard=message.number(3),
        offset=message.number(4),
        size=message.number(5),
        checksum=message.number(6),
    )
    if message.messages(7):
        raise ValueError("it has tensors in slices; save them whole")
    if len(entry.shape) > _MOST_DIMENSIONS:
        raise ValueError(f"a tensor has {len(entry.shape):,} dimensions")
    dtype = _DTYPES.get(entry.dtype)
    if dtype is not None and math.prod(entry.shape) * dtype.itemsize != entry.size:
        raise ValueError(f"a tensor of the shape {entry.shape} has {entry.size:,} bytes")
    if max(entry.shape, default=0) >= _SIZE_LIMIT:  # beside a size of 0
        raise ValueError(f"a tensor has the shape {entry.shape}")
    return entry


def _group(header: Message, entries: Mapping[str, Entry]) -> dict[int, dict[str, Entry]]:
    """The tensors of each data file."""
    if header.number(2):
        raise ValueError("its numbers have the most significant byte first; bertkit reads the other order")
    shards: dict[int, dict[str, Entry]] = {}
    for name, entry in entries.items():
        if entry.shard >= header.number(1):
            raise ValueError(f"it names data file {entry.shard + 1:,} of {header.number(1):,}")
        shards.setdefault(entry.shard, {})[name] = entry
    return shards


def _check_places(file: Path, entries: Mapping[str, Entry]) -> None:
    """Raise if a tensor is outside ``file``, or two of them share a byte: then they could need any memory."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise data_error(f"{file} is missing: {error.strerror}.") from error
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].offset, item[1].size)):
        if entry.offset < end:
            raise data_error(f"the index of {file} is damaged: {name} overlaps another tensor.")
        end = entry.offset + entry.size
        if end > size:
            raise data_error(f"{file} is cut off: it has {size:,} bytes, and {name} would end at {end:,}.")
