"""The OpenAPI document, made from the table of routes, and a page that shows it without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from bertkit._version import __version__
from bertkit.server.call import Call
from bertkit.server.endpoint import Endpoint
from bertkit.server.huggingface import HANDLERS
from bertkit.server.pages import page_reply, render
from bertkit.server.reading import NDJSON

_REQUIRED = {"text"}
"""Required query parameters."""

_PARAMETER = re.compile(r"\{(\w+)\}")
_ERRORS = {
    "400": "Malformed or empty",
    "401": "The API key is missing or wrong",
    "404": "Unknown model",
    "413": "Too large",
    "415": "Another content type",
    "422": "A field cannot be used",
    "424": "The model cannot do it",
    "429": "Overloaded: come back after Retry-After",
    "503": "Stopping or loading",
    "504": "Not answered in time",
}


def describe(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The document for these routes."""
    records = [each.record for each in endpoints if _has_fields(each.record)] + [
        record for record, _ in HANDLERS.values()
    ]
    unique = list(dict.fromkeys(records))
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    known = dict(zip(unique, schemas, strict=True))
    tasks = [_describe_task(components[record.__name__]) for record, _ in HANDLERS.values()]
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, known, tasks)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertkit", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


async def document(call: Call, _: None) -> object:
    """The OpenAPI document of this server."""
    return call.service.document


async def documentation(call: Call, _: None) -> object:
    """The same for a person."""
    return page_reply(render("docs.html", paths=call.service.document["paths"], models=call.service.models))


def _has_fields(record: Any) -> bool:
    return isinstance(record, type) and issubclass(record, msgspec.Struct)


def _describe_task(record: dict[str, Any]) -> dict[str, Any]:
    """A record as the routes of tasks take it: with ``options``, which are ignored, and perhaps null parameters."""
    properties = {**record["properties"], "options": {"type": "object"}}
    if "parameters" in properties and "parameters" not in record["required"]:
        properties["parameters"] = {"anyOf": [properties["parameters"], {"type": "null"}]}
    return {**record, "properties": properties}


def _operation(endpoint: Endpoint, known: dict[Any, Any], tasks: list[dict[str, Any]]) -> dict[str, Any]:
    names = _PARAMETER.findall(endpoint.path)
    text = {"type": "string"}
    words = re.findall(r"\w+", f"{endpoint.method.lower()} {endpoint.path}")
    operation: dict[str, Any] = {
        "operationId": "_".join(words),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": text} for name in names),
            *({"name": name, "in": "query", "required": name in _REQUIRED, "schema": text} for name in endpoint.query),
        ],
        "responses": {"200": {"description": "The answer"}},
        "security": [] if endpoint.open else [{"key": []}],
    }
    if endpoint.record is not None:
        if "{task}" in endpoint.path:
            schema: Any = {"anyOf": tasks}
        else:
            schema = known.get(endpoint.record, {"type": "object"})
        if endpoint.accepts == NDJSON:
            schema = {"anyOf": [text, schema]}  # of a line
        operation["requestBody"] = {
            "required": True,
            "content": {endpoint.accepts: {"schema": schema}},
        }
        operation["responses"] |= {status: {"description": reason} for status, reason in _ERRORS.items()}
    return operation
