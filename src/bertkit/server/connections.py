"""Deadlines of a connection: for the headers of a request, and for a client that does not read its answer."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from bertkit.server.limits import Limits


class LimitedProtocol(H11Protocol):
    """HTTP with absolute deadlines; the body has its own, in ``reading``.

    A connection on which no complete header arrives within ``header_seconds`` is closed, whether the client is silent
    or sends a byte per second. One whose client leaves sent bytes unread for ``write_seconds`` is cut off. Between two
    requests the keep-alive time of uvicorn applies. A client that closes its sending half counts as gone.
    """

    limits = Limits()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first header."""
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        """Start the deadline of a header when its first bytes arrive, and end it when the header is complete."""
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_header_timer()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_header_timer()

    def pause_writing(self) -> None:
        """Start the deadline for reading what was sent."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

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
        self._header_timer = self.loop.call_later(self.limits.header_seconds, self._end_silent_connection)

    def _end_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _end_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _end_silent_connection(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing():
            self.transport.close()


def limit_connections(limits: Limits) -> type[LimitedProtocol]:
    """The protocol with these limits."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})
