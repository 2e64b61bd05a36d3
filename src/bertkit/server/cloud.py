"""The paths of SageMaker and Vertex, and ``/predict``, which several protocols share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bertkit.errors import usage_error
from bertkit.server import cohere, huggingface, label_studio, openai, tei
from bertkit.server.call import Call
from bertkit.server.errors import malformed
from bertkit.server.reading import convert

_HEALTH, _PREDICT = "AIP_HEALTH_ROUTE", "AIP_PREDICT_ROUTE"


async def invoke(call: Call, body: dict[str, Any]) -> object:
    """``POST /``, ``/predict`` and ``/invocations``: the protocol that the keys of the body belong to."""
    if "tasks" in body:
        return await label_studio.predict(call, convert(body, label_studio.LabelStudioRequest))
    if "instances" in body:
        return await _predict_instances(call, body)
    if "query" in body:
        return await cohere.rerank_either(call, body)
    if "input" in body:
        return await openai.embeddings(call, convert(body, openai.EmbeddingsRequest))
    if "inputs" not in body:
        raise malformed("the body has no `inputs`", "inputs")
    model = call.find_model(body.get("model"))
    plain = "parameters" not in body and not isinstance(body["inputs"], dict)
    if plain and model.tasks[0] == "text-classification":
        return await tei.predict(call, convert(body, tei.PredictRequest))
    return await huggingface.dispatch(call, body)


async def _predict_instances(call: Call, body: Mapping[str, Any]) -> object:
    """Vertex: a list of inputs to a list of predictions."""
    instances, parameters = body["instances"], body.get("parameters") or {}
    if not isinstance(instances, list) or not instances:
        raise malformed("`instances` must be a list with at least one input", "instances")
    if all(isinstance(each, str) for each in instances):
        return {"predictions": await huggingface.dispatch(call, {"inputs": instances, "parameters": parameters})}
    predictions = []
    for each in instances:
        content = each if isinstance(each, dict) and "inputs" in each else {"inputs": each}
        predictions.append(await huggingface.dispatch(call, {"parameters": parameters, **content}))
    return {"predictions": predictions}


def read_vertex_routes(environment: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """The paths for health and predictions that Vertex sets in the environment."""
    routes = environment.get(_HEALTH), environment.get(_PREDICT)
    for name, route in zip((_HEALTH, _PREDICT), routes, strict=True):
        if route is not None and not route.startswith("/"):
            raise usage_error(f"{name} is {route}; a path begins with /.")
    return routes
