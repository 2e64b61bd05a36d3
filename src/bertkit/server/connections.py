"""Limits of connections: their number, the size and the deadline of headers, and a deadline for a client that does not
read."""

from __future__ import annotations

import asyncio
import math
import resource
import uuid
from contextlib import suppress
from typing import Any

import msgspec
from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bertkit.server.errors import malformed
from bertkit.server.limits import Limits
from bertkit.server.logs import log_event

_HEADER_BYTES = 65_536
_TOO_LONG = "The header is too long."
_OTHER_FILES = 64
"""Open files of the process that are no connections: models, the log, what Python imports."""

_MOST_FILES = 65_536


def raise_file_limit() -> None:
    """Let the process open as many files as it may, up to 65,536: a connection is one, and 1,024 is a usual limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError):  # macOS has a lower limit than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """How many connections may be open at a time, so that some files are left for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_FILES if soft == resource.RLIM_INFINITY else max(1, soft - _OTHER_FILES)


class LimitedProtocol(HttpToolsProtocol):
    """HTTP with absolute deadlines; the body has its own, in ``reading``.

    A connection on which no complete header arrives within ``header_seconds`` is closed, whether the client is silent
    or sends a byte per second, and so is one whose header is longer than 64 KB. One whose client reads nothing of
    what was sent for ``write_seconds`` is cut off. Between two requests the keep-alive time of uvicorn applies. A
    client that closes its sending half counts as gone. Above ``most_connections`` a new one is closed at once: without
    a file for it, the server could answer nobody.
    """

    limits: Limits
    most_connections: int

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.parser: HttpRequestParser = _RefusingUpgrades(self)
        self._header_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first header."""
        super().connection_made(MergedWrites(transport, self.loop))
        self._start_header_timer()
        if len(self.connections) > self.most_connections:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Start the deadline of a header when its first bytes arrive, and end it when the header is complete."""
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_header_timer()
        self._header_bytes += len(data)
        super().data_received(data)
        if self._header_bytes > _HEADER_BYTES:
            self.send_400_response(_TOO_LONG)
        elif self.cycle is not None and not self.cycle.response_complete:
            self._end_header_timer()

    def on_headers_complete(self) -> None:
        """Start the request; one that asks for another protocol comes here again, see ``refuse_upgrade``."""
        self._header_bytes = 0
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > _HEADER_BYTES:
            self.send_400_response(_TOO_LONG)  # one that arrived at once
        elif not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """What has arrived belongs to a body, which has a limit of its own."""
        self._header_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request has arrived."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def refuse_upgrade(self, rest: bytes) -> None:
        """Read a header again that asks for another protocol, without that wish; ``rest`` came after it.

        Clients such as Java's ask for HTTP/2 in every request and take HTTP/1.1 (RFC 9110, section 7.8). The parser
        would not read the body of such a request. CONNECT, which makes a proxy of a server, is an error.
        """
        if self.parser.get_method() == b"CONNECT":
            self.send_400_response("This is no proxy.")
            return
        head = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        head += [b"%s: %s" % header for header in self.headers if header[0] not in (b"connection", b"upgrade")]
        self.parser = _RefusingUpgrades(self)
        self.parser.feed_data(b"\r\n".join(head) + b"\r\n\r\n" + rest)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, in the form of other errors, and close the connection."""
        if self.transport.is_closing():
            return
        error, request_id = malformed(msg), uuid.uuid4().hex
        body = msgspec.json.encode(error.body("flat"))
        headers = {
            **error.headers(),
            "content-type": "application/json",
            "content-length": str(len(body)),
            "x-request-id": request_id,
            "connection": "close",
        }
        head = ["HTTP/1.1 400 Bad Request", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self.transport.write("\r\n".join(head).encode("ascii") + body)
        self.transport.close()
        log_event("refused", request_id=request_id, status=400, message=msg)

    def pause_writing(self) -> None:
        """Start the deadline for reading what was sent."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """End that deadline."""
        super().resume_writing()
        self._end_write_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """End both deadlines."""
        self._end_header_timer()
        self._end_write_timer()
        super().connection_lost(exc)

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    def _end_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _watch_reading(self, unread: float = math.inf) -> None:
        """Cut the client off if it has read nothing since ``unread`` bytes were left; a slow one is looked at again."""
        left = self.transport.get_write_buffer_size()
        if left < unread:
            self._write_timer = self.loop.call_later(self.limits.write_seconds, self._watch_reading, left)
        else:
            self.transport.abort()

    def _end_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


class _RefusingUpgrades(HttpRequestParser):
    """The parser of ``protocol``, for which no request leaves HTTP/1.1."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        super().__init__(protocol)
        self.set_dangerous_leniencies(
            lenient_data_after_close=True
        )  # as uvicorn has it: an old client may send an empty line
        self._protocol = protocol

    def feed_data(self, data: Any) -> None:
        """Parse what has arrived."""
        try:
            super().feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._protocol.refuse_upgrade(data[upgrade.args[0] :])


class MergedWrites(asyncio.Transport):
    """A transport that sends everything written in one turn of the event loop with one system call.

    uvicorn writes the head of an answer and its body one after the other. Each would be a system call that wakes the
    client up, which takes 0.12 ms (AMD EPYC).
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data`` with all else that is written now."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Close the connection when everything has been sent."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection now."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether the connection is closed or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Receive nothing until ``resume_reading``."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        """The bytes that the socket has not taken yet."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._parts))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What asyncio knows about the socket, such as its addresses."""
        return self._transport.get_extra_info(name, default)


def limit_connections(limits: Limits) -> type[LimitedProtocol]:
    """The protocol with these limits."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits, "most_connections": most_connections()})
