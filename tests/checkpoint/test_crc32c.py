"""The checksum against published values, and against a plain loop over the bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checkpoint.tensorflow_writer import mask, slow_crc32c

from bertkit.checkpoint.crc32c import crc32c, masked_crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # this and the next three: RFC 3720, appendix B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_published_values(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


@given(st.binary(max_size=99))
def test_short_data(data: bytes) -> None:
    assert crc32c(data) == slow_crc32c(data)
    assert masked_crc32c(data) == mask(slow_crc32c(data))


@pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**16 + 5, 3 * 2**16, 3 * 2**16 + 4 * 777 + 3])
def test_data_of_several_rows(size: int) -> None:
    data = bytes(number * number % 251 for number in range(size))
    assert crc32c(data) == slow_crc32c(data)
    assert crc32c(memoryview(bytearray(data))) == slow_crc32c(data)
