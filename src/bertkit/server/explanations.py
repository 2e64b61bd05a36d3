"""Attention and saliency of a text, as pages that the page for people links to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bertkit.errors import WRONG_USAGE, BertkitError, UnsupportedError
from bertkit.inference.attention_maps import read_attention
from bertkit.inference.saliency import explain
from bertkit.report.explanation_pages import describe_truncation, render_attention, render_saliency
from bertkit.server.call import Call
from bertkit.server.endpoint import Reply
from bertkit.server.errors import invalid, overloaded, unable
from bertkit.server.inputs import check_text
from bertkit.server.models import ServedModel
from bertkit.server.pages import page_reply
from bertkit.server.service import Service

Found = TypeVar("Found")

MOST_TOKENS = 64
"""Integrated gradients read the text forwards and backwards 64 times; attention has a line for each pair of tokens."""

_MOST_WAITING = 8
"""Pages that are computed or wait for one, of about a second each; more are refused with 429."""


async def show_attention(call: Call, _: None) -> object:
    """``GET /attention?model=NAME&text=TEXT``: what each head attends to."""
    model, text, pair = await asyncio.to_thread(_read, call)
    maps = await _compute(call.service, model, partial(read_attention, model.pipeline, text, pair))
    notes = describe_truncation(maps.num_truncated)
    return _reply(render_attention(maps.tokens, maps.weights, model=model.name, notes=notes))


async def show_explanation(call: Call, _: None) -> object:
    """``GET /explain?model=NAME&text=TEXT``: which tokens the prediction rests on."""
    model, text, pair = await asyncio.to_thread(_read, call)
    found = await _compute(call.service, model, partial(explain, model.pipeline, text, pair))
    notes = describe_truncation(found.num_truncated)
    page = render_saliency(
        found.tokens, found.contributions, model=model.name, prediction=found.prediction, notes=notes
    )
    return _reply(page)


async def _compute(service: Service, model: ServedModel, read: Callable[[], Found]) -> Found:
    """What ``read`` finds, computed one at a time, in a thread and with weights of its own: other requests go on.

    422 for texts that the model does not read in this form, 424 for what it cannot do, 429 if too many wait already.
    TimeoutError if it is not there before the deadline of a request.
    """
    service.state.explanations += 1
    try:
        if service.state.explanations > _MOST_WAITING:
            raise overloaded(1.0)
        with service.running():
            async with asyncio.timeout(service.limits.seconds):
                await service.explaining.acquire()
                return await asyncio.shield(_in_thread(service, read))
    except BertkitError as error:
        is_of_request = error.exit_code == WRONG_USAGE and not isinstance(error, UnsupportedError)
        raise (invalid if is_of_request else unable)(model.describe_error(error)) from error
    finally:
        service.state.explanations -= 1


async def _in_thread(service: Service, read: Callable[[], Found]) -> Found:
    """The next page may begin when the thread ends, though the request of this one may have ended long before."""
    try:
        return await asyncio.to_thread(read)
    finally:
        service.explaining.release()


def _read(call: Call) -> tuple[ServedModel, str, str | None]:
    model = call.find_model(call.query.get("model"))
    limits = call.service.limits
    text = check_text(call.query.get("text", ""), limits, "text")
    pair = call.query.get("pair")
    if count_tokens(model, text, pair) > MOST_TOKENS:
        raise invalid(f"the text is longer than the {MOST_TOKENS} tokens that a page shows", "text")
    return model, text, pair if pair is None else check_text(pair, limits, "pair")


def count_tokens(model: ServedModel, text: str, pair: str | None) -> int:
    """The tokens of a text or a pair, special ones included; 0.3 s for the longest text of a request."""
    return sum(len(model.pipeline.tokenizer.encode(each).ids) + 2 for each in (text, pair) if each)


def _reply(page: str) -> Reply:
    return page_reply(page.encode("utf-8", "replace"), policy="script-src 'unsafe-inline'")
