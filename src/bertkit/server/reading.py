"""The body of a request: read within its limits, and converted to the record that its protocol expects."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from starlette.types import Receive

from bertkit.server.errors import LONGEST_MESSAGE, ServerError, invalid, malformed, overloaded
from bertkit.server.limits import Limits
from bertkit.server.shapes import suggest_field, suggest_value

R = TypeVar("R")

JSON, NDJSON, FORM = "application/json", "application/x-ndjson", "application/x-www-form-urlencoded"
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`$")
_MISSING_FIELD = re.compile(r"Object missing required field `(.*)`$")
_BOUND = re.compile(r" [<>]=? ")
"""In what msgspec says of a number out of its range, such as "Expected `int` >= 1"."""


class ClientLeftError(Exception):
    """The client closed the connection: nobody waits for an answer."""


class Bodies:
    """Reads bodies; all that are being read or worked on hold ``Limits.held_bytes`` bytes at most."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.held = 0

    async def read(self, headers: Mapping[str, str], receive: Receive, *, accepted: str) -> bytes:
        """The whole body, of the content type ``accepted``; the caller calls ``release`` with its length."""
        check_content_type(headers, accepted)
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limits.body_bytes:  # before it is read
            raise _too_large(self._limits.body_bytes)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeftError
                    part = message.get("body", b"")
                    size += len(part)
                    self.held += len(part)
                    if size > self._limits.body_bytes:
                        raise _too_large(self._limits.body_bytes)
                    if self.held > self._limits.held_bytes:
                        raise overloaded(1.0, close=True)
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError as error:
            self.release(size)
            message_ = f"the body did not arrive within {self._limits.body_seconds:g} seconds"
            raise ServerError(408, message_, close=True) from error
        except BaseException:
            self.release(size)
            raise

    def release(self, size: int) -> None:
        """Count a body of ``size`` bytes as no longer held."""
        self.held -= size


def check_content_type(headers: Mapping[str, str], accepted: str) -> None:
    """Raise 415 for a body of another type, or for one that is compressed."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != accepted:
        raise ServerError(415, f"the content type must be {accepted}", close=True)
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ServerError(415, "compressed bodies are not accepted: send the JSON itself", close=True)


def decode(body: bytes, record: type[R]) -> R:
    """JSON as a record of this type; an error names the field."""
    try:
        return msgspec.json.decode(body, type=record)
    except msgspec.ValidationError as error:
        raise _explain(error, record) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(_describe_malformed(error)) from error


def convert(value: object, record: type[R]) -> R:
    """Decoded JSON as a record of this type; an error names the field."""
    try:
        return msgspec.convert(value, record)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _explain(error, record) from error


def _describe_malformed(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the body is not UTF-8"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    cut = "the JSON ends too early (or its last escape is one half of a surrogate pair)"
    return str(error).replace("Input data was truncated", cut) or "the body is not JSON"


def _explain(error: Exception, record: type[Any]) -> ServerError:
    """A 422 with the place of the wrong field."""
    text = str(error)[:LONGEST_MESSAGE] or "the body is nested too deeply"
    found = _PATH.search(text)
    field, text = (found[1] or None, text[: found.start()]) if found else (None, text)
    hint = ""
    if match := _UNKNOWN_FIELD.search(text) or _MISSING_FIELD.search(text):
        hint = suggest_field(record, field or "", match[1]) if "unknown" in text else ""
        field = f"{field}.{match[1]}" if field else match[1]
    elif field and not _BOUND.search(text):
        hint = suggest_value(record, field)
    message = f"{field}: {text}" if field else text
    return invalid(f"{message}." if hint else message, field, hint or None)


def _too_large(limit: int) -> ServerError:
    return ServerError(413, f"the body is larger than {limit:,} bytes", close=True)
