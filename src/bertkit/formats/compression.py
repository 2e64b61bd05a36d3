"""The bytes of a file, plain or compressed, in blocks; a damaged or truncated file is an error that names it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

import zstandard

from bertkit.errors import BertkitError, data_error

ALWAYS_UNPACKED = 1 << 24
MOST_EXPANSION = 30
"""A compressed file may unpack to 16 MiB, or to 30 times its own length. Text unpacks to 3 to 5 times its length, a
file that is made to fill memory, disk or time to 1,000 times."""

_BLOCK = 1 << 20
_XZ_MEMORY = 1 << 28
"""Bytes that a decompressor of xz may take: ``xz -9`` needs 65 MB, and a file can ask for 4 GB."""

_ZSTD_INPUT = 1 << 12
"""Bytes that zstd gets at a time. Each can expand to 32,768 bytes, so the result has at most 128 MB."""


class ByteStream:
    """One pass over the decompressed bytes of ``path``; ``position`` is the position in the file itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0

    def __iter__(self) -> Generator[bytes, None, None]:
        decompress = _DECOMPRESSORS.get(self.path.suffix.lower(), _plain)
        unpacked = 0
        try:
            most = math.inf if decompress is _plain else most_unpacked(self.path)
            with self.path.open("rb") as file:
                for block in decompress(file):
                    unpacked += len(block)
                    if unpacked > most:
                        raise expansion_error(self.path)
                    self.position = file.tell()
                    yield block
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            cause = getattr(error, "strerror", None)
            problem = f"cannot be read: {cause}" if cause else f"is damaged or cut off: {error}"
            raise data_error(f"{self.path} {problem}.") from error


def most_unpacked(path: Path) -> int:
    """The bytes that a compressed file may unpack to."""
    return max(ALWAYS_UNPACKED, MOST_EXPANSION * path.stat().st_size)


def check_unpacked(path: Path, unpacked: int) -> None:
    """Raise a data error if ``path`` unpacks, or says that it does, to more bytes than it may."""
    if unpacked > most_unpacked(path):
        raise expansion_error(path)


def expansion_error(path: Path) -> BertkitError:
    """The error about a file that unpacks to more."""
    return data_error(
        f"{path} has {path.stat().st_size:,} bytes and unpacks to more than {most_unpacked(path):,}: it may be made to "
        "fill the memory or the disk. Unpack it yourself if you trust it."
    )


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


def _gunzip(file: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as unzipped:
        while block := unzipped.read(_BLOCK):
            yield block
    if not file.tell():
        raise EOFError("the file is empty")


def _unzstd(file: BinaryIO) -> Iterator[bytes]:
    """Decompress frame after frame. The library's own file object does not notice a truncated frame."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    held: list[bytes] = []
    size = 0
    while fed := file.read(_ZSTD_INPUT):
        while fed:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            held.append(frame.decompress(fed))
            size += len(held[-1])
            fed = frame.unused_data
        if size >= _BLOCK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
    if not frame.eof:
        raise EOFError("the last frame has no end")


def _unpack_streams(
    file: BinaryIO, start: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], padding: bytes = b""
) -> Iterator[bytes]:
    """Decompress stream after stream; ``padding`` may be between them."""
    stream = start()
    while True:
        fed = b""
        if stream.eof:
            fed = stream.unused_data.lstrip(padding)
            while not fed:
                if not (block := file.read(_BLOCK)):
                    return
                fed = block.lstrip(padding)
            stream = start()
        elif stream.needs_input and not (fed := file.read(_BLOCK)):
            raise EOFError("the last stream has no end")
        if block := stream.decompress(fed, _BLOCK):
            yield block


_DECOMPRESSORS: Mapping[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": _gunzip,
    ".bz2": partial(_unpack_streams, start=bz2.BZ2Decompressor),
    ".xz": partial(_unpack_streams, start=lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY), padding=b"\0"),
    ".zst": _unzstd,
}
