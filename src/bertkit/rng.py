"""Counter-based random numbers: each is a pure function of (seed, epoch, index, stream, position).

With a stateful generator an example depends on everything drawn before it, so a resume has to replay, and a second
worker changes the order. A counter-based generator has no state: a batch computes the numbers of its own indices, all
rows at once, and every process gets the same ones at any time.

The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood 2014). The permutation is a four-round Feistel
network, applied repeatedly until the result is inside the range (cycle walking; Black and Rogaway 2002).

Letters: B rows, W numbers per row.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The constants of SplitMix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_FEISTEL_ROUNDS = 4


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def _key(*parts: int | str) -> NDArray[np.uint64]:
    """Hash integers and names into one 64-bit key. An array of one, because numpy warns of overflow in scalars."""
    key = np.zeros(1, dtype=np.uint64)
    for part in parts:
        number = zlib.crc32(part.encode()) if isinstance(part, str) else part & (2**64 - 1)
        key = _mix(key ^ np.uint64(number))
    return key


@dataclass(frozen=True, slots=True, eq=False)
class CounterRng:
    """The random numbers of the examples ``indices`` (B,) in one epoch."""

    seed: int
    epoch: int
    indices: NDArray[np.int64]

    def uniform(self, stream: str, width: int = 1) -> NDArray[np.float64]:
        """(B, W) numbers in [0, 1). Equal stream names give equal numbers."""
        rows = _mix(_key(self.seed, self.epoch, stream) ^ self.indices.astype(np.uint64))
        positions = np.arange(1, width + 1, dtype=np.uint64) * _STEP
        bits = _mix(rows[:, None] ^ positions) >> np.uint64(11)  # 53 bits, as many as a float64 holds exactly
        return bits.astype(np.float64) * 2.0**-53

    def below(self, stream: str, limit: int | NDArray[np.int64], width: int = 1) -> NDArray[np.int64]:
        """(B, W) integers in [0, limit); ``limit`` is one number, or one per row."""
        limits = np.asarray(limit, dtype=np.int64)
        if limits.ndim == 1:
            limits = limits[:, None]
        integers: NDArray[np.int64] = (self.uniform(stream, width) * limits).astype(np.int64)
        return integers


def permute(indices: NDArray[np.int64], size: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """The positions of ``indices`` in a shuffle of ``range(size)``, without the whole shuffle in memory."""
    half_bits = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
    half_mask = np.uint64((1 << half_bits) - 1)
    keys = [_key(seed, epoch, f"permute.{number}") for number in range(_FEISTEL_ROUNDS)]
    positions = indices.astype(np.uint64)
    outside = np.ones(len(positions), dtype=bool)
    while outside.any():
        positions[outside] = _feistel(positions[outside], keys, half_bits, half_mask)
        outside = positions >= np.uint64(size)
    return positions.astype(np.int64)


def _feistel(
    values: NDArray[np.uint64], keys: list[NDArray[np.uint64]], half_bits: int, half_mask: np.uint64
) -> NDArray[np.uint64]:
    left, right = values >> np.uint64(half_bits), values & half_mask
    for key in keys:
        left, right = right, left ^ (_mix(key ^ right) & half_mask)
    return (left << np.uint64(half_bits)) | right
