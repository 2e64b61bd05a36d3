"""Bodies: their limits, their types, and errors that name the field."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from starlette.types import Message, Receive

from bertkit.server.errors import LONGEST_MESSAGE, ServerError
from bertkit.server.limits import Limits
from bertkit.server.reading import JSON, Bodies, ClientLeftError, decode
from bertkit.server.records import ClassifyRequest

HEADERS = {"content-type": "application/json; charset=utf-8"}


def receiver(*parts: bytes, ends: bool = True, pause: float = 0) -> Receive:
    messages: Sequence[Message] = [
        {"type": "http.request", "body": part, "more_body": number < len(parts) or not ends}
        for number, part in enumerate(parts, start=1)
    ]
    remaining = iter(messages)

    async def receive() -> Message:
        await asyncio.sleep(pause)
        return next(remaining, {"type": "http.disconnect"})

    return receive


def read(limits: Limits, receive: Receive, **headers: str) -> bytes:
    bodies = Bodies(limits)
    try:
        body = asyncio.run(bodies.read({**HEADERS, **headers}, receive, accepted=JSON))
    except BaseException:
        assert bodies.held == 0
        raise
    assert bodies.held == len(body)
    return body


def test_a_body_in_parts_is_put_together() -> None:
    assert read(Limits(), receiver(b'{"a"', b":1}")) == b'{"a":1}'


def test_a_declared_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ServerError) as caught:
        read(Limits(body_bytes=9), receiver(pause=60), **{"content-length": "10"})
    assert (caught.value.status, caught.value.close) == (413, True)


def test_a_body_without_a_length_is_refused_when_it_is_too_large() -> None:
    with pytest.raises(ServerError) as caught:
        read(Limits(body_bytes=9), receiver(b"12345", b"67890", b"x" * 100))
    assert caught.value.status == 413


def test_all_bodies_together_have_a_limit() -> None:
    with pytest.raises(ServerError) as caught:
        read(Limits(body_bytes=99, held_bytes=7), receiver(b"12345", b"678"))
    assert (caught.value.status, caught.value.retry_after) == (429, 1.0)


def test_a_slow_body_has_a_deadline() -> None:
    with pytest.raises(ServerError, match=r"did not arrive within 0.05 seconds") as caught:
        read(Limits(body_seconds=0.05), receiver(b"a", b"b", b"c", pause=0.03))
    assert caught.value.status == 408


def test_a_client_that_leaves_is_noticed() -> None:
    with pytest.raises(ClientLeftError):
        read(Limits(), receiver(b"a", ends=False))


@pytest.mark.parametrize(
    "headers",
    [{"content-type": "text/plain"}, {"content-type": ""}, {"content-encoding": "gzip"}, {"content-encoding": "br"}],
)
def test_other_types_and_compressed_bodies_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ServerError) as caught:
        read(Limits(), receiver(b"{}"), **headers)
    assert caught.value.status == 415


@pytest.mark.parametrize(
    ("body", "status", "field", "message"),
    [
        (b"{", 400, None, "ends too early"),
        (b'{"inputs": "\\ud83d"}', 400, None, "one half of a surrogate pair"),
        (b"", 400, None, "ends too early"),
        (b"\xff\xfe", 400, None, "malformed"),
        (b'{"inputs":"\xff"}', 400, None, "not UTF-8"),
        (b'{"inputs":"\\ud800"}', 400, None, ""),
        (b'{"inputs":NaN}', 400, None, "malformed"),
        (b"[" * 100_000, 422, None, "Expected `object`"),
        (b'{"inputs":' + b"[" * 100_000, 422, None, ""),
        (b'{"inputs":1}', 422, "inputs", "Expected `str | object | array`"),
        (b'{"inputs":["a",{}]}', 422, "inputs[1].text", "missing required field `text`"),
        (b"{}", 422, "inputs", "missing required field"),
        (b'{"inputs":"a","paramters":{}}', 422, "paramters", 'Did you mean "parameters"?'),
        (b'{"inputs":"a","parameters":{"input":3}}', 422, "parameters.input", "unknown field `input`"),
        (b'{"inputs":"a","parameters":{"top_k":"3"}}', 422, "parameters.top_k", "Expected `int | null`"),
        (b'{"inputs":"a","parameters":{"top_k":0}}', 422, "parameters.top_k", "Expected `int` >= 1"),
        (b'{"inputs":"a","parameters":{"top_k":99999999999999999999999}}', 422, "parameters.top_k", ""),
    ],
)
def test_errors_name_the_field(body: bytes, status: int, field: str | None, message: str) -> None:
    with pytest.raises(ServerError) as caught:
        decode(body, ClassifyRequest)
    assert caught.value.status == status
    assert message in caught.value.message
    if field is not None:
        assert caught.value.field == field


@pytest.mark.parametrize(("value", "hint"), [(b'"3"', "Send a whole number."), (b"0", "")])
def test_a_number_out_of_its_range_is_not_called_no_number(value: bytes, hint: str) -> None:
    with pytest.raises(ServerError) as caught:
        decode(b'{"inputs":"a","parameters":{"top_k":%b}}' % value, ClassifyRequest)
    assert (caught.value.hint or "") == hint


@pytest.mark.parametrize("name", ["\u00e9" * 500_000, " - at `$" * 100_000 + "\\n"], ids=["letters", "places"])
def test_the_name_of_an_unknown_field_comes_back_cut(name: str) -> None:
    """A search in all of it would hold up the event loop for seconds, or for hours."""
    with pytest.raises(ServerError, match="unknown field") as caught:
        decode(f'{{"inputs":"a","{name}":1}}'.encode(), ClassifyRequest)
    assert len(caught.value.message) <= LONGEST_MESSAGE
    assert caught.value.field is None
