"""Paths that do not exist, other methods, and pages of other origins."""

from __future__ import annotations

import logging

import httpx2
import pytest
from starlette.testclient import TestClient
from tests.server.running import get, post, running

from bertkit.server.app import build_app
from bertkit.server.models import ServedModel
from bertkit.server.run import Server
from bertkit.server.service import Service

METHOD = "the path does not have this method"


def test_errors_of_the_router_have_the_body_that_clients_read(server: Server) -> None:
    unknown = get(server, "/nowhere")
    assert (unknown.status_code, unknown.json()["error_type"]) == (404, "NotFound")
    assert unknown.headers["x-error-message"].startswith("no such path")
    wrong = get(server, "/embed")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    every = httpx2.delete(f"{server.address}/models/reviews", timeout=60)
    assert (every.status_code, every.headers["allow"]) == (405, "POST")
    assert httpx2.delete(f"{server.address}/", timeout=60).headers["allow"] == "GET, HEAD, POST"
    for path in ("/v1/nowhere", "/v1/embeddings", "/embeddings"):
        assert get(server, path).json()["error"]["message"].split(":")[0] in ("no such path", METHOD)


def test_errors_of_the_router_are_counted_and_logged(
    loaded: list[ServedModel], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bertkit.server.logs")
    with running(loaded[:1]) as server:
        assert get(server, "/nowhere", **{"x-request-id": "abc-7"}).headers["x-request-id"] == "abc-7"
        assert get(server, "/embed").headers["x-request-id"]
        counted = get(server, "/metrics").text
    assert all(f'status="{status}"' in counted for status in (404, 405))
    logged = [line for line in capsys.readouterr().err.splitlines() if "abc-7" in line]
    assert len(logged) == 1
    assert '"path":"/nowhere","status":404' in logged[0].replace(": ", ":").replace(", ", ",")


def test_a_slash_at_the_end_of_a_path_is_ignored(server: Server) -> None:
    assert get(server, "/health/").status_code == 200
    assert post(server, "/v1/embeddings/", {"input": "a"}).status_code == 200
    assert post(server, "/models/reviews/", {"inputs": "a", "parameters": {}}).status_code == 200
    assert get(server, "/health//").status_code == 404


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
