"""NDJSON in and out: a request of any length, one input per line, answered line by line in order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from bertkit.server import huggingface
from bertkit.server.call import Call
from bertkit.server.endpoint import CLIENT_LEFT, ENCODER, Endpoint, encode, finish, send_reply, start_call
from bertkit.server.errors import ServerError, internal, malformed, stopping
from bertkit.server.jobs import Usage
from bertkit.server.logs import log_error
from bertkit.server.reading import NDJSON, ClientLeftError, check_content_type, convert, decode

_LINES_AT_A_TIME = 64
_BYTES_AT_A_TIME = 32_000
"""Lines and bytes that are read ahead of the answers, or one line: enough to fill batches. So a stream leaves room for
others in memory and in the queue, and little is computed for a client that has left."""

_BYTES_AHEAD = 1_000_000
_FIRST_ANSWER = 250_000
"""Bytes of answers that may wait for a client to read them, if each is as large as the largest so far, or as this: an
answer with the candidates of many masks may have a megabyte."""

_OK = 200


class StreamLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line: the inputs of one request, with its parameters."""

    inputs: Any
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class StreamEndpoint(Endpoint):
    """``POST /stream``: a line is a text as JSON or ``{"inputs": ..., "parameters": {...}}``.

    The answer to the n-th line that is not empty, counted from 0, is ``{"index": n, "result": ...}`` or
    ``{"index": n, "error": ...}``. The query may have a ``model``. A line has the limits of a whole body.
    """

    accepts: str = NDJSON

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer line by line."""
        begin = time.monotonic()
        call = start_call(scope, begin)
        status = CLIENT_LEFT
        try:
            with ExitStack() as counted:
                status = await self._answer_stream(call, scope, receive, send, counted)
        except ClientLeftError:
            pass
        except Exception:
            status = 500
            raise
        finally:
            call.leave()
            finish(call, status, time.monotonic() - begin)

    async def _answer_stream(self, call: Call, scope: Scope, receive: Receive, send: Send, counted: ExitStack) -> int:
        """Send the answers, or why there are none; the status. ``counted`` ends with the stream."""
        try:
            self.admit(call, scope)
            if scope["http_version"] == "1.0":
                raise ServerError(505, "a stream needs HTTP/1.1, which has answers in parts", close=True)
            check_content_type(call.headers, self.accepts)
            call.find_model(call.query.get("model"))
            counted.enter_context(call.service.running())
        except Exception as error:
            reply = self.explain(call, error)
            await send_reply(send, reply, [("x-request-id", call.request_id)])
            return reply.status
        headers = [(b"content-type", NDJSON.encode()), (b"x-request-id", call.request_id.encode())]
        await send({"type": "http.response.start", "status": _OK, "headers": headers})
        number, status = 0, _OK
        try:
            async for line in _answer_lines(call, read_lines(call, receive)):
                await send({"type": "http.response.body", "body": line, "more_body": True})
                number += 1
        except asyncio.CancelledError:  # the time that running requests have after a signal is over
            late = stopping()
            status, line = late.status, ENCODER.encode({"index": number, **late.body("flat")}) + b"\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return status


async def read_lines(call: Call, receive: Receive) -> AsyncIterator[bytes | ServerError]:
    """The lines of the body as they arrive, without empty ones.

    A line that is too long is an error in its place. A wait that is too long ends the body; it is the last item then.
    """
    limits = call.service.limits
    rest, is_too_long = b"", False
    while True:
        try:
            async with asyncio.timeout(limits.body_seconds):
                message = await receive()
        except TimeoutError:
            message_ = f"no line arrived within {limits.body_seconds:g} seconds: the stream ends, send the rest again"
            yield ServerError(408, message_)
            return
        if message["type"] == "http.disconnect":
            raise ClientLeftError
        *lines, rest = (rest + message.get("body", b"")).split(b"\n")
        if is_too_long and not lines:  # what follows of that line is dropped, up to its end
            rest = b""
        elif is_too_long:
            lines, is_too_long = lines[1:], False
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > limits.body_bytes:
            yield malformed(f"the line is longer than {limits.body_bytes:,} bytes")
            rest, is_too_long = b"", True
        if not message.get("more_body", False):
            if rest.strip():
                yield rest
            return


async def _answer_lines(call: Call, lines: AsyncIterator[bytes | ServerError]) -> AsyncIterator[bytes]:
    """The answers in order, each as soon as it is there; a few lines are worked on at a time."""
    answers: deque[asyncio.Task[bytes]] = deque()
    sizes: deque[int] = deque()
    reading: asyncio.Task[bytes | ServerError | None] | None = None
    number, ended = 0, False
    largest = 0
    try:
        while True:
            ahead = min(_LINES_AT_A_TIME, max(1, _BYTES_AHEAD // (largest or _FIRST_ANSWER)))
            if reading is None and not ended and len(sizes) < ahead and sum(sizes) < _BYTES_AT_A_TIME:
                reading = asyncio.create_task(_next_line(lines))
            # A client may wait for this answer before it sends another line.
            waiting = [task for task in (reading, answers[0] if answers else None) if task is not None]
            if not waiting:
                return
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if reading is not None and reading.done():
                line, reading = reading.result(), None
                if line is None:
                    ended = True
                else:
                    answers.append(asyncio.create_task(_answer_line(call, number, line)))
                    sizes.append(len(line) if isinstance(line, bytes) else 0)
                    number += 1
            while answers and answers[0].done():
                sizes.popleft()
                answer = answers.popleft().result()
                largest = max(largest, len(answer))
                yield answer
    finally:
        for task in (*answers, *([] if reading is None else [reading])):
            task.cancel()


async def _next_line(lines: AsyncIterator[bytes | ServerError]) -> bytes | ServerError | None:
    return await anext(lines, None)


async def _answer_line(call: Call, number: int, line: bytes | ServerError) -> bytes:
    own = replace(call, deadline=0.0, usage=Usage())
    try:
        result = await _run(own, line)
    except ServerError as error:
        return ENCODER.encode({"index": number, **error.body("flat")}) + b"\n"
    except Exception as error:
        log_error(call, error)
        return ENCODER.encode({"index": number, **internal().body("flat")}) + b"\n"
    finally:
        call.usage.add(own.usage)
    cut = {"truncated_tokens": own.usage.truncated_tokens} if own.usage.truncated_tokens else {}
    return await encode(own, {"index": number, "result": result, **cut}) + b"\n"


async def _run(call: Call, line: bytes | ServerError) -> object:
    if isinstance(line, ServerError):
        raise line
    content = decode(line, object)
    if isinstance(content, dict):
        record = convert(content, StreamLine)
        content, parameters = record.inputs, record.parameters
    else:
        parameters = None
    given = {} if parameters is None else {"parameters": parameters}  # without any, some models give vectors
    return await huggingface.dispatch_patiently(call, {"inputs": content, "model": call.query.get("model"), **given})
