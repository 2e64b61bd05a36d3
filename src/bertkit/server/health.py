"""Whether the process lives, whether it takes requests, and whether its models have run."""

from __future__ import annotations

import time

from bertkit.server.call import Call
from bertkit.server.endpoint import Reply
from bertkit.server.errors import loading, stopping


async def live(call: Call, _: None) -> object:
    """200 as long as the process answers."""
    return {"status": "UP"}


async def ready(call: Call, _: None) -> object:
    """200 while predictions are accepted; 503 before the models are loaded and after a signal to stop."""
    state = call.service.state
    if "model" in call.path_parameters:
        call.find_model(None)  # 404 for another name
    if state.stopping:
        raise stopping()
    if not state.warm:
        raise loading()
    return {"status": "UP", "unix": time.time(), "models": list(call.service.models)}


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
