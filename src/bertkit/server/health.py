"""Whether the process lives, whether it takes requests, and whether its models have run."""

from __future__ import annotations

import time

from bertkit.server.call import Call
from bertkit.server.endpoint import Reply
from bertkit.server.errors import ended, loading, stopping
from bertkit.server.huggingface import find_path_model


async def live(call: Call, _: None) -> object:
    """200 as long as the process can answer: no longer when the thread of the models has ended, after which only a new
    start helps."""
    _check_thread(call)
    return {"status": "UP"}


async def ready(call: Call, _: None) -> object:
    """200 while predictions are accepted; 503 before the models are loaded, after a signal to stop, and if the thread
    of the models has ended. It needs no key: without one the answer does not depend on which models there are."""
    service = call.service
    if service.state.stopping:
        raise stopping()
    if not service.state.warm:
        raise loading()
    _check_thread(call)
    if call.path_parameters and service.keys.allow(call.headers.get("authorization", "")):
        find_path_model(call)
    return {"status": "UP", "unix": time.time()}


def _check_thread(call: Call) -> None:
    if call.service.batcher.has_ended:
        raise ended()


async def warm(call: Call, _: None) -> object:
    """200 when every model has computed once, so that the next request is not slower than others."""
    if not call.service.state.warm:
        raise loading()
    return {"status": "UP"}


async def metrics(call: Call, _: None) -> object:
    """Prometheus metrics."""
    service = call.service
    service.metrics.queued_tokens.set(service.batcher.queued_tokens)
    service.metrics.running.set(service.state.running)
    return Reply(service.metrics.render(), "text/plain; version=0.0.4; charset=utf-8")
