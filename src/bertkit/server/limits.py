"""What one request, one connection and the whole server may use."""

from __future__ import annotations

from dataclasses import dataclass

from bertkit.ranges import PositiveFloat, PositiveInt, check_ranges

MEGABYTE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a server.

    Of a request: ``body_bytes``; the number of ``inputs`` and the ``characters`` of each; ``seconds`` until it has to
    be answered. Of a connection: seconds until its headers (``header_seconds``) and its body (``body_seconds``) have
    arrived, and in which the client reads nothing of what was sent (``write_seconds``). Of the server: ``requests`` at
    a time, bytes of bodies and as many of large answers that clients have not read yet (``held_bytes``),
    ``queued_tokens`` that wait for a model, ``batch_tokens`` that a model reads at a time, and the seconds
    (``window_seconds``) that a batch waits for more requests.
    """

    body_bytes: PositiveInt = 2 * MEGABYTE
    inputs: PositiveInt = 4096
    characters: PositiveInt = 200_000
    seconds: PositiveFloat = 60.0
    header_seconds: PositiveFloat = 10.0
    body_seconds: PositiveFloat = 60.0
    write_seconds: PositiveFloat = 60.0
    requests: PositiveInt = 256
    held_bytes: PositiveInt = 64 * MEGABYTE
    queued_tokens: PositiveInt = 262_144
    batch_tokens: PositiveInt = 2048
    window_seconds: PositiveFloat = 0.002

    def __post_init__(self) -> None:
        check_ranges(self)
