"""Messages of protocol buffers, read without a schema: the few that TensorFlow's checkpoints contain.

https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST_VARINT = 10
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


class Message:
    """The fields of a message by their numbers. An absent field is 0 or empty, as in version 3 of the language."""

    def __init__(self, fields: Mapping[int, list[int | bytes]]) -> None:
        self._fields = fields

    def number(self, field: int) -> int:
        """The last value of a numeric field."""
        value = self._fields.get(field, [0])[-1]
        if not isinstance(value, int):
            raise ValueError(f"field {field} of a message is not a number")
        return value

    def messages(self, field: int) -> list[Message]:
        """All values of a field that has messages."""
        values = self._fields.get(field, [])
        return [read_message(value) for value in values if isinstance(value, bytes)]


def read_message(data: bytes) -> Message:
    """The message in ``data``; a ValueError if it is not one."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        value: int | bytes | None = None
        if kind == _VARINT:
            value, at = read_varint(data, at)
        elif kind == _BYTES:
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in _FIXED_SIZES:
            size = _FIXED_SIZES[kind]
            value, at = int.from_bytes(data[at : at + size], "little"), at + size
        if value is None or at > len(data):
            raise ValueError("a message is cut off or of an unknown kind")
        fields.setdefault(tag >> 3, []).append(value)
    return Message(fields)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number of variable length that begins at ``at``, below 2 to the 64, and where it ends."""
    value = 0
    for position, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            if value >> 64:
                raise ValueError("a number has more than 64 bits")
            return value, at + position + 1
    raise ValueError("a number has no end")
