"""The OpenAPI document beside the server that it describes."""

from __future__ import annotations

import re
from typing import Any

from starlette.routing import Route
from tests.server.running import get, post

from bertkit.server.app import build_app
from bertkit.server.models import ServedModel
from bertkit.server.run import Server
from bertkit.server.service import Service


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, methods in document["paths"].items() for method, each in methods.items()]


def test_every_route_is_in_the_document_and_no_other(server: Server, loaded: list[ServedModel]) -> None:
    app = build_app(Service(loaded[:1]))
    routes = {(each.path, method) for each in app.routes if isinstance(each, Route) for method in each.methods or ()}
    described = {(path, method.upper()) for path, method, _ in operations(get(server, "/openapi.json").json())}
    assert described == {(path, method) for path, method in routes if method != "HEAD"}


def test_every_described_route_answers(server: Server) -> None:
    """With an empty object as its body: an answer or an error of the client, never 404, 405 or 500."""
    for path, method, operation in operations(get(server, "/openapi.json").json()):
        concrete = path.replace("{model}", "reviews").replace("{task}", "text-classification")
        if concrete in ("/attention", "/explain"):
            concrete += "?text=a+river"
        reply = get(server, concrete) if method == "get" else post(server, concrete, {})
        assert reply.status_code in ({200} if method == "get" else {200, 400, 415, 422}), path
        assert operation["summary"]


def test_every_reference_has_a_schema(server: Server) -> None:
    reply = get(server, "/openapi.json")
    schemas = reply.json()["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/(\w+)"', reply.text))
    assert references
    assert references <= set(schemas)
    assert schemas["ClassifyRequest"]["additionalProperties"] is False


def test_operations_have_names_of_their_own_and_what_their_query_may_have(server: Server) -> None:
    listed = operations(get(server, "/openapi.json").json())
    names = [each["operationId"] for _, _, each in listed]
    assert len(set(names)) == len(names)
    queries = {
        path: {each["name"]: each["required"] for each in operation["parameters"] if each["in"] == "query"}
        for path, _, operation in listed
    }
    assert queries["/attention"] == queries["/explain"] == {"model": False, "text": True, "pair": False}
    assert queries["/stream"] == {"model": False}


def test_bodies_that_are_taken_fit_the_document(server: Server) -> None:
    """One body may fit several tasks, and each takes Hugging Face's options."""
    paths = get(server, "/openapi.json").json()["paths"]
    task = paths["/pipeline/{task}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert task.keys() == {"anyOf"}
    assert all("options" in each["properties"] for each in task["anyOf"])
    line = paths["/stream"]["post"]["requestBody"]["content"]["application/x-ndjson"]["schema"]
    assert {"type": "string"} in line["anyOf"]
    fill = task["anyOf"][0]["properties"]["parameters"]
    assert {"type": "null"} in fill["anyOf"]


def test_the_page_of_routes_needs_no_network(server: Server) -> None:
    reply = get(server, "/docs")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    page = reply.text
    assert "/v2/rerank" in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "<script" not in page
