"""The sorted string table in which TensorFlow stores the index of a checkpoint: LevelDB's format.

https://github.com/google/leveldb/blob/main/doc/table_format.md
"""

from __future__ import annotations

from collections.abc import Iterator

from bertkit.checkpoint.crc32c import masked_crc32c
from bertkit.checkpoint.protobuf import read_varint

FOOTER_BYTES = 48
MAGIC = 0xDB4775248B80FB57
TRAILER_BYTES = 5
"""After every block: one byte for its compression, four for its checksum."""

MOST_ENTRIES = 50_000
"""BERT-large with the moments of its optimizer has 1,200 tensors."""

LONGEST_KEY = 1_000

_Handle = tuple[int, int]
"""The offset and the size of a block."""


def read_table(data: bytes) -> dict[bytes, bytes]:
    """The values of a table by their keys; a ValueError if anything in ``data`` is not as it was written."""
    if len(data) < FOOTER_BYTES or int.from_bytes(data[-8:], "little") != MAGIC:
        raise ValueError("it does not end as an index of TensorFlow does")
    footer = data[-FOOTER_BYTES:-8]
    metadata, at = _read_handle(footer, 0)
    index, at = _read_handle(footer, at)
    if any(footer[at:]):
        raise ValueError("its footer has more than two blocks")
    entries: dict[bytes, bytes] = {}
    end, last = 0, None
    for _, value in _read_block(data, index):
        handle, used = _read_handle(value, 0)
        if handle[0] != end or used != len(value):
            raise ValueError("its blocks do not follow one another")
        end += handle[1] + TRAILER_BYTES
        for key, content in _read_block(data, handle):
            if (last is not None and key <= last) or len(entries) == MOST_ENTRIES:
                raise ValueError(f"its keys are not sorted, or more than {MOST_ENTRIES:,}")
            entries[key] = content
            last = key
    if list(_read_block(data, metadata)) or _follow(end, metadata, index) != len(data) - FOOTER_BYTES:
        raise ValueError("its blocks do not follow one another")
    return entries


def _follow(end: int, *handles: _Handle) -> int:
    """The end of the last of these blocks; -1 if the first does not begin at ``end``, or another where one ends."""
    for offset, size in handles:
        if offset != end:
            return -1
        end += size + TRAILER_BYTES
    return end


def _read_handle(data: bytes, at: int) -> tuple[_Handle, int]:
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def _read_block(data: bytes, handle: _Handle) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block, after its checksum. A key repeats the beginning of the one before."""
    offset, size = handle
    end = offset + size
    if end + TRAILER_BYTES > len(data):
        raise ValueError("a block would end after the file")
    if masked_crc32c(data[offset : end + 1]) != int.from_bytes(data[end + 1 : end + TRAILER_BYTES], "little"):
        raise ValueError(f"the checksum of the block at byte {offset:,} is wrong")
    if data[end] != 0:
        raise ValueError("it is compressed, as no version of TensorFlow writes it")
    block = data[offset:end]
    num_restarts = int.from_bytes(block[-4:], "little")
    limit = size - 4 * (num_restarts + 1)
    at, key = 0, b""
    while at < limit:
        shared, at = read_varint(block, at)
        own, at = read_varint(block, at)
        length, at = read_varint(block, at)
        if shared > len(key) or at + own + length > limit or shared + own > LONGEST_KEY:
            raise ValueError("an entry is longer than its block")
        key = key[:shared] + block[at : at + own]
        yield key, block[at + own : at + own + length]
        at += own + length
    if at != limit:
        raise ValueError("an entry is longer than its block")
