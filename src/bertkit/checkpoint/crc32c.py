"""CRC-32C (Castagnoli), the checksum of TensorFlow's checkpoints: RFC 3720, appendix B.4.

A checksum is linear in its message, so rows of many words are folded into one another with NumPy: each word of a row
is moved over a whole row of zeros and combined with the word below it. Two tables of 16 bits do the moving.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78
"""The polynomial with its bits reversed."""

_ALL_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8

_ROW = 2**14
"""Words of a row: 64 KiB, which stay in the cache of a core beside the two tables of 256 KiB."""


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of ``data``."""
    whole = len(data) // 4
    register = _fold(np.frombuffer(data, dtype="<u4", count=whole)) if whole else _ALL_ONES
    for byte in bytes(data[4 * whole :]):
        register = _byte_table()[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ _ALL_ONES


def masked_crc32c(data: bytes | memoryview) -> int:
    """The form in which LevelDB and TensorFlow store a checksum: rotated right by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_ONES


def _fold(words: Words) -> int:
    """The register after ``words``, begun with all ones."""
    size = min(_ROW, 1 << (len(words) - 1).bit_length())
    first = len(words) % size or size
    row = np.zeros(size, np.uint32)  # zeros before a message do not change a register of zero
    row[size - first :] = words[:first]
    row[size - first] ^= _ALL_ONES
    move = _mover(4 * size)
    for start in range(first, len(words), size):
        row = move(row)
        row ^= words[start : start + size]
    while size > 1:
        size //= 2
        row = _mover(4 * size)(row[:size]) ^ row[size:]
    return int(_mover(4)(row)[0])


@cache
def _byte_table() -> list[int]:
    """The register after one byte, by the byte."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


@cache
def _mover(zeros: int) -> Callable[[Words], Words]:
    """A function that moves registers over ``zeros`` bytes of 0; a power of two."""
    images = np.array([1 << bit for bit in range(32)], dtype=np.uint32)
    if zeros == 1:
        table = np.array(_byte_table(), dtype=np.uint32)
        images = table[images & 0xFF] ^ images >> 8
    else:
        half = _mover(zeros // 2)
        images = half(half(images))
    low, high = _combine(images[:16]), _combine(images[16:])

    def move(registers: Words) -> Words:
        halves = registers.view(np.uint16)
        moved: Words = low.take(halves[0::2])
        moved ^= high.take(halves[1::2])
        return moved

    return move


def _combine(images: Words) -> Words:
    """The image of each number of 16 bits, from those of the bits."""
    table = np.zeros(1, dtype=np.uint32)
    for image in images:
        table = np.concatenate([table, table ^ image])
    return table
