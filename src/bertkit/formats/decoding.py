"""Bytes to text: checked UTF-8, line ends as ``\\n``, and lines of bounded length."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertkit.errors import BertkitError, data_error
from bertkit.formats.encodings import advise_on_conversion, refuse_other_formats

BadBytes = Literal["error", "replace"]

_SAMPLE = 4096
_REPLACEMENT = "\ufffd"


@dataclass(slots=True)
class DecodingLog:
    """What was found while decoding. ``first_bad`` is the place of the first byte that was replaced."""

    has_byte_order_mark: bool = False
    replaced: int = 0
    first_bad: str = ""


def decode(
    path: Path,
    blocks: Iterable[bytes],
    on_bad_bytes: BadBytes,
    log: DecodingLog,
    *,
    offset: int = 0,
    first_line: int = 1,
) -> Iterator[str]:
    """The text of ``blocks`` without a byte order mark, every line end as ``\\n``.

    A byte that is not UTF-8 is an error that says where it is, or is replaced by U+FFFD and counted. ``offset`` and
    ``first_line`` are the place in the file where the blocks begin.
    """
    line, rest = first_line, b""
    for block in _with_end(blocks):
        if not offset and not rest:
            _refuse_binary(path, block)
        data = rest + block
        is_last = not block
        # A carriage return waits for the line feed that may follow it.
        end = len(data) - (data.endswith(b"\r") and not is_last)
        try:
            text, used = codecs.utf_8_decode(data[:end], "strict", is_last)
        except UnicodeDecodeError as error:
            before = data[: error.start]
            at = line + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
            place = f"{path}, line {at:,}: byte {offset + error.start + 1:,} of the file"
            if on_bad_bytes == "error":
                raise _not_utf8(place, data, error.start) from error
            log.first_bad = log.first_bad or place
            text, used = codecs.utf_8_decode(data[:end], "replace", is_last)
            log.replaced += text.count(_REPLACEMENT) - data[:used].count(_REPLACEMENT.encode())
        if not offset and text.startswith("\ufeff"):
            log.has_byte_order_mark = True
            text = text[1:]
        offset, rest = offset + used, data[used:]
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        line += text.count("\n")
        if text:
            yield text


def decode_value(place: str, value: bytes, on_bad_bytes: BadBytes, log: DecodingLog) -> str:
    """The text of one value of a record; ``place`` names it in the error about a byte that is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        if on_bad_bytes == "error":
            raise data_error(
                f"{place}: byte {error.start + 1:,} of the text is not UTF-8. Fix it, or replace such bytes and count "
                "them with --on-bad-bytes replace."
            ) from error
        log.first_bad = log.first_bad or place
        text = value.decode(errors="replace")
        log.replaced += text.count(_REPLACEMENT) - value.count(_REPLACEMENT.encode())
        return text


def count_lines(blocks: Iterable[bytes], end: int) -> int:
    """Line ends in the first ``end`` bytes of ``blocks``: ``\\n``, ``\\r\\n`` or ``\\r``."""
    lines = done = 0
    after_return = False
    for block in blocks:
        block = block[: end - done]
        if not block:
            break
        done += len(block)
        lines += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
        lines -= after_return and block.startswith(b"\n")
        after_return = block.endswith(b"\r")
    return lines


def _with_end(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks that are not empty, and an empty one after the last."""
    yield from filter(None, blocks)
    yield b""


def _not_utf8(place: str, data: bytes, at: int) -> BertkitError:
    return data_error(
        f"{place} is not UTF-8{advise_on_conversion(data, at)}, or replace such bytes and count them with "
        "--on-bad-bytes replace."
    )


def _refuse_binary(path: Path, block: bytes) -> None:
    refuse_other_formats(path, block)
    head = block[:_SAMPLE]
    # Half of the bytes of Latin text in UTF-16 are zero; UTF-8 has them only for the character NUL.
    if head.count(0) * 4 > len(head):
        raise data_error(f"{path} looks like UTF-16 or binary data: {head.count(0):,} of {len(head):,} bytes are zero.")


def cut_lines(chunks: Iterable[str], longest: int) -> Iterator[str]:
    """Lines with their ``\\n``; a line longer than ``longest`` is cut into parts, at a space if there is one.

    White space alone is never cut off: it would be an empty line, which ends a document. The result does not depend on
    where the chunks end, so that a file and its compressed copy are cut in the same way.
    """
    rest = ""
    for chunk in chunks:
        first, *others = chunk.split("\n")
        rest += first
        for line in others:
            yield from _parts(rest + "\n", longest)
            rest = line
        *parts, rest = _parts(rest, longest)
        yield from parts
    if rest:
        yield rest


def _parts(line: str, longest: int) -> Iterator[str]:
    while len(line) > longest and not line[longest:].isspace():
        at = line.rfind(" ", longest // 2, longest) + 1 or longest
        yield line[:at]
        line = line[at:]
    yield line
