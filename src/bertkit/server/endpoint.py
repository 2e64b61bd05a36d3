"""A route: the request is admitted, read and checked here, and its answer or error is sent."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import numpy as np
from starlette.types import Receive, Scope, Send

from bertkit.server.call import Call
from bertkit.server.errors import (
    Dialect,
    ServerError,
    internal,
    loading,
    malformed,
    overloaded,
    stopping,
    too_late,
)
from bertkit.server.logs import log_error, log_request
from bertkit.server.reading import JSON, ClientLeftError, decode
from bertkit.server.service import LARGE_ANSWER, Service

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
CLIENT_LEFT = 499
"""The status in the log of a request whose client has left, as nginx writes it."""

_QUERY_FIELDS = 20
"""More than any route has."""

_LARGE = 512
"""Tokens of a request above which a thread encodes its answer: for 4,096 vectors of 768 numbers that takes 0.6 s."""


def _to_json(value: object) -> object:
    """A matrix as its rows: a thread that encodes it lets the event loop go on between two of them."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim > 1 else value.tolist()
    return str(value)


ENCODER = msgspec.json.Encoder(enc_hook=_to_json)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is not JSON with status 200."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] | None = None


Handler = Callable[[Call, Any], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An ASGI application for one path and method.

    ``record`` is the type of the body, None for a request without one; ``handle`` gets it and returns what is sent as
    JSON, or a Reply. ``query`` are the fields of its query. Errors have the form of ``dialect``. An ``open`` endpoint
    needs no key and is never refused for overload. ``accepts`` is the content type; of another than JSON the handler
    gets the bytes.
    """

    path: str
    handle: Handler
    summary: str
    tag: str
    record: Any = None
    query: tuple[str, ...] = ()
    method: str = "POST"
    dialect: Dialect = "flat"
    open: bool = False
    accepts: str = JSON

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begin = time.monotonic()
        call = start_call(scope, begin)
        try:
            reply = await self._answer(call, scope, receive)
            with call.service.sending(len(reply.body)) as fits:
                reply = reply if fits else self._error_reply(overloaded(1.0))
                seconds, status = time.monotonic() - begin, reply.status
                await send_reply(send, reply, [*_usage_headers(call, seconds), ("x-request-id", call.request_id)])
        except ClientLeftError:
            seconds, status = time.monotonic() - begin, CLIENT_LEFT
        finally:
            call.leave()
        finish(call, status, seconds)

    async def _answer(self, call: Call, scope: Scope, receive: Receive) -> Reply:
        try:
            self.admit(call, scope)
            if self.record is None:
                return await _reply(call, await self.handle(call, None))
            return await self._read_and_answer(call, receive)
        except ClientLeftError:
            raise
        except asyncio.CancelledError:  # the time that running requests have after a signal is over
            return self._error_reply(stopping())
        except Exception as error:
            return self.explain(call, error)

    async def _read_and_answer(self, call: Call, receive: Receive) -> Reply:
        service = call.service
        body = await service.bodies.read(call.headers, receive, accepted=self.accepts)
        try:
            with service.running():
                record = _with_model(decode(body, self.record), call) if self.accepts == JSON else body
                work = self.handle(call, record)
                return await _reply(call, await _while_connected(work, receive, service.limits.seconds))
        finally:
            service.bodies.release(len(body))

    def admit(self, call: Call, scope: Scope) -> None:
        """Refuse requests without a key, before the models are loaded, while the server stops, or with a long query."""
        if self.open:
            return  # open routes are not counted, so the server does not wait for them when it stops
        service = call.service
        if not service.keys.allow(call.headers.get("authorization", "")):
            raise ServerError(401, "the API key is missing or wrong", close=True)
        if service.state.stopping:
            raise stopping()
        if not service.state.warm:  # the thread of the models loads them, and a handler would load them again
            raise loading()
        call.enter()
        call.query = _read_query(scope["query_string"])

    def explain(self, call: Call, error: Exception) -> Reply:
        """The answer to a request that failed; an error of the server itself goes to the log."""
        if isinstance(error, TimeoutError):
            error = too_late()
        if not isinstance(error, ServerError):
            log_error(call, error)
            error = internal()
        return self._error_reply(error)

    def _error_reply(self, error: ServerError) -> Reply:
        """An error in the form of the protocol."""
        return Reply(ENCODER.encode(error.body(self.dialect)), JSON, error.status, error.headers())


def start_call(scope: Scope, begin: float) -> Call:
    """The request of an ASGI scope, which came at ``begin``."""
    service: Service = scope["app"].state.service
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return Call(
        service,
        headers,
        scope.get("path_params", {}),
        _request_id(headers.get("x-request-id", "")),
        method=scope["method"],
        path=scope["path"],
        deadline=begin + service.limits.seconds,
    )


def _with_model(record: Any, call: Call) -> Any:
    """The record with the model that the query names, where the body names none."""
    name = call.query.get("model")
    if name is None:
        return record
    if isinstance(record, dict):
        return {"model": name, **record}
    return msgspec.structs.replace(record, model=name) if getattr(record, "model", "") is None else record


def _read_query(query: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(query.decode("latin-1"), max_num_fields=_QUERY_FIELDS))
    except ValueError as error:
        raise malformed(f"the query has more than {_QUERY_FIELDS} fields") from error


async def _while_connected(work: Awaitable[object], receive: Receive, seconds: float) -> object:
    """The result of ``work``, which is cancelled when the client leaves or the time is over."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(receive())
    try:
        await asyncio.wait((task, watch), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if watch.done():
            raise ClientLeftError
        raise TimeoutError
    finally:
        task.cancel()
        watch.cancel()
        # An error of the task has this frame in its traceback, and would keep the body in memory in a reference cycle.
        del task, watch


async def _reply(call: Call, answer: object) -> Reply:
    return answer if isinstance(answer, Reply) else Reply(await encode(call, answer), JSON)


async def encode(call: Call, answer: object) -> bytes:
    """The answer to a request as JSON."""
    return ENCODER.encode(answer) if call.usage.tokens <= _LARGE else await asyncio.to_thread(ENCODER.encode, answer)


async def send_reply(send: Send, reply: Reply, more: list[tuple[str, str]]) -> None:
    """Send the answer and ``more`` headers; for a large one, return when the client has read nearly all of it."""
    headers = [("content-type", reply.content_type), ("content-length", str(len(reply.body)))]
    headers += [*(reply.headers or {}).items(), *more]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    large = len(reply.body) > LARGE_ANSWER
    await send({"type": "http.response.body", "body": reply.body, "more_body": large})
    if large:
        await asyncio.sleep(0)  # now MergedWrites gives the socket what it has
        await send({"type": "http.response.body", "body": b""})  # uvicorn waits until there is room


def _usage_headers(call: Call, seconds: float) -> list[tuple[str, str]]:
    """TEI's headers, in milliseconds, for a request that a model has answered; and what was cut off."""
    usage = call.usage
    if not usage.inputs:
        return []
    times = {
        "x-compute-time": seconds,
        "x-total-time": seconds,
        "x-tokenization-time": usage.tokenization_seconds,
        "x-queue-time": usage.queue_seconds,
        "x-inference-time": usage.inference_seconds,
    }
    headers = [(name, f"{1000 * value:.3f}") for name, value in times.items()]
    headers += [("x-compute-type", f"{_device(call)}+optimized"), ("x-compute-tokens", str(usage.tokens))]
    if usage.characters:
        headers.append(("x-compute-characters", str(usage.characters)))
    if usage.truncated_inputs:
        headers.append(("x-truncated-inputs", str(usage.truncated_inputs)))
        headers.append(("x-truncated-tokens", str(usage.truncated_tokens)))
    return headers


def _device(call: Call) -> str:
    """TEI's word for where the models are computed."""
    model = next(iter(call.service.models.values()))
    return "cpu" if model.pipeline.device.type == "cpu" else "gpu"


def finish(call: Call, status: int, seconds: float) -> None:
    """Count and log a request that has ended."""
    call.service.metrics.observe_request(call.model, call.task, status, seconds, call.usage)
    log_request(call, status, seconds)


def _request_id(given: str) -> str:
    """The client's own id if it is harmless, else a new one."""
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
