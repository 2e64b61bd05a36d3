"""Files that are plain or compressed, whole or damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.formats.compression import ByteStream

DATA = random.Random(13).randbytes(3_000_001)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_the_bytes_are_those_that_were_compressed(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_bytes(COMPRESS[suffix](DATA))
    stream = ByteStream(path)
    assert b"".join(stream) == DATA
    assert stream.position == path.stat().st_size


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_several_streams_are_one_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    padding = bytes(8) if suffix == ".xz" else b""
    path.write_bytes(COMPRESS[suffix](b"one ") + padding + COMPRESS[suffix](b"two") + padding)
    assert b"".join(ByteStream(path)) == b"one two"


def test_much_padding_between_streams_ends_no_file(tmp_path: Path) -> None:
    path = tmp_path / "data.xz"
    path.write_bytes(COMPRESS[".xz"](b"one ") + bytes(3 << 20) + COMPRESS[".xz"](b"two"))
    assert b"".join(ByteStream(path)) == b"one two"


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("keep", [0, 7, -1])
def test_a_truncated_file_is_an_error_that_names_it(suffix: str, keep: int, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_bytes(COMPRESS[suffix](DATA)[:keep])
    with pytest.raises(BertkitError, match=f"data{suffix} is damaged or cut off: ") as caught:
        list(ByteStream(path))
    assert caught.value.exit_code == BAD_DATA


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"none\.txt cannot be read"):
        list(ByteStream(tmp_path / "none.txt"))
