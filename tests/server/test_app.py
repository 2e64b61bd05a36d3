"""Paths that do not exist, other methods, and pages of other origins."""

from __future__ import annotations

from starlette.testclient import TestClient
from tests.server.running import get, post

from bertkit.server.app import build_app
from bertkit.server.models import ServedModel
from bertkit.server.run import Server
from bertkit.server.service import Service


def test_errors_of_the_router_have_the_body_that_clients_read(server: Server) -> None:
    unknown = get(server, "/nowhere")
    assert (unknown.status_code, unknown.json()["error_type"]) == (404, "NotFound")
    assert unknown.headers["x-error-message"].startswith("no such path")
    wrong = get(server, "/embed")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")


def test_no_answer_names_the_software(server: Server) -> None:
    for reply in (get(server, "/health"), get(server, "/nowhere"), post(server, "/embed", {})):
        assert "server" not in reply.headers
        assert "uvicorn" not in reply.text.lower()


def test_pages_of_other_origins_are_refused_unless_named(loaded: list[ServedModel]) -> None:
    asking = {"origin": "https://example.org", "access-control-request-method": "POST"}
    with TestClient(build_app(Service(loaded[:1]))) as client:
        assert "access-control-allow-origin" not in client.options("/embed", headers=asking).headers
    with TestClient(build_app(Service(loaded[:1]), cors_origins=["https://example.org"])) as client:
        allowed = client.options("/embed", headers=asking)
        assert allowed.headers["access-control-allow-origin"] == "https://example.org"
        asked = client.options("/embed", headers={**asking, "access-control-request-headers": "x-tokenizer"})
        assert asked.status_code == 200
        read = client.post("/embed", json={"inputs": 1}, headers={"origin": "https://example.org"})
        assert "x-error-message" in read.headers["access-control-expose-headers"]
        other = client.options("/embed", headers={**asking, "origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers
