"""The log: a line of JSON per event on stderr. Control characters are escaped, so that no input can forge a line."""

from __future__ import annotations

import logging
import select
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from io import UnsupportedOperation

from bertkit.escaping import to_json
from bertkit.server.call import Call

_LONGEST = 200
"""Characters of a path or a message that a line shows."""

_AT_ONCE = 1000
"""Characters that a pipe takes at once if it takes any: 4,096 bytes (POSIX PIPE_BUF), of which one may need four."""


def log_event(event: str, **fields: object) -> None:
    """Write one line, unless the reader of stderr has ended or reads nothing: no request waits for it."""
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = to_json({"time": moment, "event": event, **fields}) + "\n"
    with suppress(OSError):
        for start in range(0, len(line), _AT_ONCE):
            if not _takes_more():
                return
            sys.stderr.write(line[start : start + _AT_ONCE])
            sys.stderr.flush()


def _takes_more() -> bool:
    """Whether writing to stderr would not wait."""
    try:
        waiting = select.poll()
        waiting.register(sys.stderr.fileno(), select.POLLOUT)
    except UnsupportedOperation:  # no file, such as in a notebook
        return True
    return bool(waiting.poll(0))


def log_request(call: Call, status: int, seconds: float) -> None:
    """Write the line of a request: no text of its body and no key."""
    if not logging.getLogger(__name__).isEnabledFor(logging.INFO):
        return
    usage = call.usage
    log_event(
        "request",
        request_id=call.request_id,
        method=call.method,
        path=call.path[:_LONGEST],
        status=status,
        model=call.model,
        task=call.task,
        inputs=usage.inputs,
        tokens=usage.tokens,
        truncated_inputs=usage.truncated_inputs,
        queue_ms=round(1000 * usage.queue_seconds, 3),
        inference_ms=round(1000 * usage.inference_seconds, 3),
        total_ms=round(1000 * seconds, 3),
    )


def log_error(call: Call, error: Exception) -> None:
    """Write an error of the server itself, with its traceback, which no client sees."""
    lines = traceback.format_exception(error)
    log_event("error", request_id=call.request_id, path=call.path[:_LONGEST], traceback="".join(lines))


class EventHandler(logging.Handler):
    """Writes what uvicorn and asyncio log in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, with the traceback of an exception."""
        raised = record.exc_info and record.exc_info[1]
        details = {"traceback": "".join(traceback.format_exception(raised))} if raised else {}
        source, message = record.name.partition(".")[0], record.getMessage()[:_LONGEST]
        log_event(source, level=record.levelname.lower(), message=message, **details)


def set_up(*, quiet: bool) -> None:
    """Send the messages of uvicorn and asyncio to the log; with ``quiet`` write errors only."""
    logging.getLogger(__name__).setLevel(logging.ERROR if quiet else logging.INFO)
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [EventHandler()], False
        logger.setLevel(logging.ERROR if quiet else logging.WARNING)
