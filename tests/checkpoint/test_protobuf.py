"""Messages without a schema, and bytes that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checkpoint.tensorflow_writer import field, varint

from bertkit.checkpoint.protobuf import read_message, read_varint


@given(st.integers(0, 2**64 - 1))
def test_numbers_of_every_length(number: int) -> None:
    assert read_varint(b"\x80" + varint(number), 1) == (number, 1 + len(varint(number)))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 10, b"\xff" * 1000, b"\xff" * 9 + b"\x7f"])
def test_a_number_without_an_end_or_beyond_64_bits_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="a number has"):
        read_varint(data, 0)


def test_fields_by_number() -> None:
    inner = [field(1, 3), field(1, 300) + varint(7 << 3 | 1) + bytes(8)]
    message = read_message(field(1, 5) + field(1, 6) + b"".join(field(2, each) for each in inner))
    assert message.number(1) == 6, "the last value of a repeated number counts"
    assert [each.number(1) for each in message.messages(2)] == [3, 300]
    assert (message.number(3), message.messages(3)) == (0, [])


@pytest.mark.parametrize("data", [b"\x0b", b"\x0c", b"\x0f", b"\x12\x05abc", b"\x0d\x00", b"\x12\xff\xff\xff\xff\x0f"])
def test_a_message_that_is_cut_off_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="cut off or of an unknown kind"):
        read_message(data)


def test_a_field_of_another_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="field 1 of a message is not a number"):
        read_message(field(1, b"abc")).number(1)


@given(st.binary(max_size=99))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        read_message(data)
    except ValueError as error:
        assert "a number" in str(error) or "a message" in str(error)
