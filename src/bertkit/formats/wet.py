"""The texts of Common Crawl's WET files: WARC records of the type ``conversion`` (ISO 28500)."""

from __future__ import annotations

from collections.abc import Iterator

from bertkit.errors import BertkitError, data_error
from bertkit.formats.compression import ByteStream
from bertkit.formats.decoding import BadBytes, DecodingLog, decode_value

LONGEST_RECORD_BYTES = 1 << 27
"""Bytes; a record must fit into memory."""

_LONGEST_HEADER = 1 << 16
_HEADER_END = b"\r\n\r\n"


def read_wet(stream: ByteStream, on_bad_bytes: BadBytes, log: DecodingLog) -> Iterator[str]:
    """The text of each web page. Every line of it is a paragraph, because WET files have a line per HTML element."""
    number = 0
    held = bytearray()
    blocks = iter(stream)
    while (end := _find_header(held, blocks, f"{stream.path}, record {number + 1:,}")) >= 0:
        number += 1
        place = f"{stream.path}, record {number:,}"
        kind, length = _parse_header(bytes(held[:end]), place)
        begin = end + len(_HEADER_END)
        while len(held) < begin + length:
            if (block := next(blocks, None)) is None:
                raise data_error(f"{place} is cut off: it has {len(held) - begin:,} of {length:,} bytes.")
            held += block
        if kind == "conversion":
            text = decode_value(place, bytes(held[begin : begin + length]), on_bad_bytes, log)
            yield "\n\n".join(line.removesuffix("\r") for line in text.split("\n"))
        del held[: begin + length]


def _find_header(held: bytearray, blocks: Iterator[bytes], place: str) -> int:
    """The end of the header at the beginning of ``held``, which is filled as needed; -1 at the end of the file."""
    while True:
        # Records are separated by two line ends, which belong to neither.
        while held and held[0] in b"\r\n":
            del held[0]
        if (end := held.find(_HEADER_END)) >= 0:
            return end
        if len(held) > _LONGEST_HEADER:
            raise _not_warc(place)
        if (block := next(blocks, None)) is None:
            if held:
                raise _not_warc(place)
            return -1
        held += block


def _parse_header(header: bytes, place: str) -> tuple[str, int]:
    """The type of the record, and the length of its content in bytes."""
    version, *lines = header.decode("utf-8", "replace").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = fields.get("content-length", "")
    if not version.startswith("WARC/") or not (length.isascii() and length.isdigit()):
        raise _not_warc(place)
    if len(length) > 12 or int(length) > LONGEST_RECORD_BYTES:
        raise data_error(f"{place} has {length} bytes; at most {LONGEST_RECORD_BYTES:,} are read.")
    return fields.get("warc-type", "").lower(), int(length)


def _not_warc(place: str) -> BertkitError:
    return data_error(f"{place}: no WARC header with a Content-Length. The file is damaged or is not a WET file.")
