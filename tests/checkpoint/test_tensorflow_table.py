"""Tables that an independent writer made; and every way to damage one is found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checkpoint.tensorflow_writer import make_block, make_table, mask, slow_crc32c, varint

from bertkit.checkpoint import tensorflow_table
from bertkit.checkpoint.tensorflow_table import read_table

ENTRIES = {f"bert/encoder/layer_{number}/output".encode(): bytes([number] * number) for number in range(31)}
BROKEN = r"^(it|its|a|an|the) "
"""How the messages of the reader begin."""

KEYS = st.text("ab/_", max_size=9).map(str.encode)


def end_table(blocks: bytes, footer: bytes) -> bytes:
    return blocks + footer.ljust(40, b"\0") + 0xDB4775248B80FB57.to_bytes(8, "little")


def sealed(block: bytes, kind: bytes = b"\0") -> bytes:
    return block + kind + mask(slow_crc32c(block + kind)).to_bytes(4, "little")


def table_of_one_block(block: bytes, kind: bytes = b"\0") -> bytes:
    """A valid table around one block."""
    first = sealed(block, kind)
    empty = sealed(make_block([]))
    index = make_block([(b"z", varint(0) + varint(len(block)))])
    handles = [(len(first), len(empty) - 5), (len(first) + len(empty), len(index))]
    footer = b"".join(varint(offset) + varint(size) for offset, size in handles)
    return end_table(first + empty + sealed(index), footer)


@given(st.dictionaries(KEYS, st.binary(max_size=7), max_size=60), st.integers(1, 9))
@settings(max_examples=50)
def test_what_was_written_is_read(entries: dict[bytes, bytes], per_block: int) -> None:
    assert read_table(make_table(entries, per_block=per_block)) == entries


def test_every_flipped_bit_is_found() -> None:
    table = make_table(ENTRIES)
    assert read_table(table) == ENTRIES
    for at in range(len(table)):
        damaged = bytearray(table)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(ValueError, match=BROKEN):
            read_table(bytes(damaged))


@pytest.mark.parametrize("size", [0, 1, 47, 48, 500])
def test_a_table_that_was_cut_off_is_an_error(size: int) -> None:
    with pytest.raises(ValueError, match=BROKEN):
        read_table(make_table(ENTRIES)[:size])
    with pytest.raises(ValueError, match=BROKEN):
        read_table(make_table(ENTRIES)[-size:] if size else b"")


@pytest.mark.parametrize("extra", [b"\0", b"abc"])
def test_bytes_between_the_blocks_are_an_error(extra: bytes) -> None:
    table = make_table(ENTRIES)
    for changed in (extra + table, table[:-48] + extra + table[-48:]):
        with pytest.raises(ValueError, match=BROKEN):
            read_table(changed)


@pytest.mark.parametrize(
    "entry",
    [
        (3, 1, 0, b"a"),  # more of the key before than there is
        (0, 99, 0, b"a"),
        (0, 1, 2**62, b"a"),
        (0, 2**63, 2**63, b"a"),
    ],
)
def test_an_entry_that_claims_more_than_its_block_is_an_error(entry: tuple[int, int, int, bytes]) -> None:
    shared, own, length, rest = entry
    block = varint(shared) + varint(own) + varint(length) + rest + bytes(4) + b"\1\0\0\0"
    with pytest.raises(ValueError, match="longer than its block"):
        read_table(table_of_one_block(block))


def test_restart_points_beyond_the_block_are_an_error() -> None:
    with pytest.raises(ValueError, match="longer than its block"):
        read_table(table_of_one_block(b"\0\1\0a" + b"\xff" * 4))


def test_a_compressed_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="it is compressed"):
        read_table(table_of_one_block(make_block([(b"a", b"b")]), kind=b"\1"))


def test_keys_out_of_order_are_an_error() -> None:
    for keys in ([b"b", b"a"], [b"a", b"a"]):
        with pytest.raises(ValueError, match="not sorted"):
            read_table(table_of_one_block(make_block([(key, b"") for key in keys])))


def test_keys_that_would_need_any_memory_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key repeats the one before: a file of some megabytes could describe terabytes of keys."""
    with pytest.raises(ValueError, match="longer than its block"):
        read_table(table_of_one_block(make_block([(b"a" * 1001, b"")])))
    monkeypatch.setattr(tensorflow_table, "MOST_ENTRIES", 30)
    with pytest.raises(ValueError, match="more than 30"):
        read_table(make_table(ENTRIES))
