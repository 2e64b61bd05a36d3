"""The paths of SageMaker and Vertex, and ``/predict``, which several protocols share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from bertkit.errors import usage_error
from bertkit.server import cohere, huggingface, label_studio, openai, tei
from bertkit.server.call import Call
from bertkit.server.errors import ServerError, invalid, malformed
from bertkit.server.inputs import check_number
from bertkit.server.models import EMBED
from bertkit.server.reading import convert

_HEALTH, _PREDICT, _PORT = "AIP_HEALTH_ROUTE", "AIP_PREDICT_ROUTE", "AIP_HTTP_PORT"

_CLASSIFY = "text-classification"
_NESTED = (_CLASSIFY, EMBED)
"""Tasks whose answer is a list with one entry per text, also for one text."""

_INSTANCES_AT_A_TIME = 64
"""Enough to fill batches."""


class VertexRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Inputs, or records with ``inputs`` and parameters of their own."""

    instances: list[Any]
    parameters: dict[str, Any] | None = None
    model: str | None = None


async def invoke(call: Call, body: dict[str, Any]) -> object:
    """``POST /``: the protocol that the keys of the body belong to."""
    if "tasks" in body:
        return await label_studio.predict(call, convert(body, label_studio.LabelStudioRequest))
    if "instances" in body:
        return await _predict_instances(call, convert(body, VertexRequest))
    if "query" in body:
        return await cohere.rerank_either(call, body)
    if "input" in body:
        return await openai.embeddings(call, convert(body, openai.EmbeddingsRequest))
    if "inputs" not in body:
        raise malformed("the body has no `inputs`", "inputs")
    if _is_plain(body) and call.find_model(body.get("model")).tasks[0] == _CLASSIFY:
        return await tei.predict(call, convert(huggingface.without_options(body), tei.PredictRequest))
    return await huggingface.dispatch(call, body)


async def predict(call: Call, body: dict[str, Any]) -> object:
    """``POST /predict`` and ``/invocations``: texts are for the first model that classifies, if there is one."""
    if call.path == "/predict" and "input" in body:  # SageMaker's only path takes OpenAI's bodies, too
        raise invalid("the body has no `inputs`; `input` is for /v1/embeddings", "inputs")
    able = any(model.tasks[0] == _CLASSIFY for model in call.service.models.values())
    if _is_plain(body) and body.get("model") is None and able:
        return await tei.predict(call, convert(huggingface.without_options(body), tei.PredictRequest))
    return await invoke(call, body)


def _is_plain(body: Mapping[str, Any]) -> bool:
    """Whether the body has texts without parameters, as TEI's clients send them."""
    if "inputs" not in body or "parameters" in body:
        return False
    inputs = body["inputs"] if isinstance(body["inputs"], list) else [body["inputs"]]
    return not any(isinstance(each, dict) for each in inputs)


async def _predict_instances(call: Call, request: VertexRequest) -> object:
    """Vertex: a list of inputs to a list of predictions."""
    common: dict[str, Any] = {"model": request.model}
    if request.parameters is not None:  # without any, some models give vectors
        common["parameters"] = request.parameters
    if not request.instances:
        raise malformed("`instances` must be a list with at least one input", "instances")
    check_number(request.instances, call.service.limits, "instances")
    records = [each if isinstance(each, dict) and "inputs" in each else {"inputs": each} for each in request.instances]
    places = asyncio.Semaphore(_INSTANCES_AT_A_TIME)
    parts = [
        asyncio.ensure_future(_predict_instance(call, number, {**common, **record}, places))
        for number, record in enumerate(records)
    ]
    try:
        return {"predictions": await asyncio.gather(*parts)}
    finally:
        for part in parts:
            part.cancel()


async def _predict_instance(call: Call, number: int, body: dict[str, Any], places: asyncio.Semaphore) -> object:
    """The prediction for one input, without the list around that of one text."""
    async with places:
        try:
            found = await huggingface.dispatch_patiently(call, body)
        except ServerError as error:
            error.field = ".".join([f"instances[{number}]", *([error.field] if error.field else [])])
            raise
    task = huggingface.task_of_body(call.service.model(body["model"]), body)
    return found if task not in _NESTED or isinstance(body["inputs"], list) else found[0]  # type: ignore[index]


def read_vertex_port(otherwise: int) -> int:
    """The port that Vertex sets in the environment, or another one."""
    port = os.environ.get(_PORT) or str(otherwise)
    if not (port.isdecimal() and int(port) < 2**16):
        raise usage_error(f"{_PORT} is {port}; a port is a number up to 65535.")
    return int(port)


def read_vertex_routes() -> tuple[str | None, str | None]:
    """The paths for health and predictions that Vertex sets in the environment."""
    routes = os.environ.get(_HEALTH), os.environ.get(_PREDICT)
    for name, route in zip((_HEALTH, _PREDICT), routes, strict=True):
        if route is not None and not route.startswith("/"):
            raise usage_error(f"{name} is {route}; a path begins with /.")
    return routes
