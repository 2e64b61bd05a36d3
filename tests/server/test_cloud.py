"""The paths of SageMaker and Vertex."""

from __future__ import annotations

import pytest
from tests.server.running import get, post

from bertkit.errors import BertkitError
from bertkit.server.cloud import read_vertex_routes
from bertkit.server.routes import list_endpoints
from bertkit.server.run import Server


def test_sagemaker_pings_and_invokes(server: Server) -> None:
    assert get(server, "/ping").status_code == 200
    assert post(server, "/invocations", {"inputs": "the river"}).json()[0]["label"] in ("dry", "wet", "odd")


def test_instances_become_predictions(server: Server) -> None:
    texts = post(server, "/predict", {"instances": ["the river", "the mill"]}).json()["predictions"]
    assert [len(each) for each in texts] == [3, 3]
    question = {"inputs": {"question": "who", "context": "the mill"}, "model": "questions"}
    (answer,) = post(server, "/predict", {"instances": [question]}).json()["predictions"]
    assert answer["answer"] in "the mill"
    assert post(server, "/predict", {"instances": []}).status_code == 400


def test_the_keys_of_a_body_choose_the_protocol(server: Server) -> None:
    assert post(server, "/", {"input": "a river"}).json()["object"] == "list"
    assert post(server, "/", {"query": "a", "texts": ["b"], "model": "ranker"}).json()[0]["index"] == 0
    assert post(server, "/", {"something": 1}).status_code == 400
    nested, flat = (
        post(server, "/", {"inputs": "a", "parameters": {}}).json(),
        post(server, "/", {"inputs": "a"}).json(),
    )
    assert nested == [flat]


def test_vertex_names_its_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIP_HEALTH_ROUTE", "/v1/endpoints/7/up")
    monkeypatch.setenv("AIP_PREDICT_ROUTE", "/v1/endpoints/7/go")
    paths = {(each.method, each.path) for each in list_endpoints()}
    assert {("GET", "/v1/endpoints/7/up"), ("POST", "/v1/endpoints/7/go")} <= paths
    with pytest.raises(BertkitError, match="a path begins with /"):
        read_vertex_routes({"AIP_HEALTH_ROUTE": "up"})
