"""The paths of SageMaker and Vertex."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.server.running import get, post, running

from bertkit.errors import BertkitError
from bertkit.server.cloud import read_vertex_port, read_vertex_routes
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.routes import list_endpoints
from bertkit.server.run import Server


def test_an_input_that_is_spelled_as_openai_does_is_no_request_for_a_prediction(server: Server) -> None:
    reply = post(server, "/predict", {"input": "the river"})
    assert (reply.status_code, reply.json()["field"]) == (422, "inputs")
    assert "`input` is for /v1/embeddings" in reply.json()["error"]


def test_sagemaker_pings_and_invokes(server: Server) -> None:
    assert get(server, "/ping").status_code == 200
    assert post(server, "/invocations", {"inputs": [{"text": "the river"}]}).status_code == 200
    assert post(server, "/invocations", {"inputs": "the river"}).json()[0]["label"] in ("dry", "wet", "odd")


def test_instances_become_predictions(server: Server) -> None:
    texts = post(server, "/predict", {"instances": ["the river", "the mill"]}).json()["predictions"]
    assert [len(each) for each in texts] == [3, 3]
    question = {"inputs": {"question": "who", "context": "the mill"}, "model": "questions"}
    (answer,) = post(server, "/predict", {"instances": [question]}).json()["predictions"]
    assert answer["answer"] in "the mill"
    assert post(server, "/predict", {"instances": []}).status_code == 400
    mixed = post(server, "/predict", {"instances": ["the river", {"text": "the mill"}]}).json()["predictions"]
    assert [set(each[0]) >= {"label", "score"} for each in mixed] == [True, True]


def test_an_error_names_the_instance(server: Server) -> None:
    wrong = {"inputs": {"question": "who", "contex": "the mill"}, "model": "questions"}
    right = {"inputs": {"question": "who", "context": "the mill"}, "model": "questions"}
    assert post(server, "/predict", {"instances": [right, wrong]}).json()["field"] == "instances[1].inputs.contex"
    for model in ("reviews", "words"):
        reply = post(server, "/predict", {"instances": ["the river", "river " * 90], "model": model})
        assert (reply.status_code, reply.json()["field"]) == (422, "instances[1].inputs")


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
        monkeypatch.setenv("AIP_HEALTH_ROUTE", "up")
        read_vertex_routes()
    assert read_vertex_port(8080) == 8080
    monkeypatch.setenv("AIP_HTTP_PORT", "9000")
    assert read_vertex_port(8080) == 9000
    monkeypatch.setenv("AIP_HTTP_PORT", "http")
    with pytest.raises(BertkitError, match="AIP_HTTP_PORT is http; a port is a number up to 65535"):
        read_vertex_port(8080)


def test_instances_are_for_the_model_that_is_named(server: Server) -> None:
    body = {"instances": ["a [MASK]", "the [MASK] ran"], "model": "words"}
    masks = post(server, "/predict", {**body, "parameters": {}}).json()
    assert [len(each) for each in masks["predictions"]] == [5, 5]
    vectors = post(server, "/predict", body).json()
    assert [np.shape(each) for each in vectors["predictions"]] == [(14,), (14,)]
    labels = post(server, "/predict", {"instances": ["a", {"inputs": "a"}], "model": "reviews"}).json()["predictions"]
    one, other = labels
    assert [each["label"] for each in one] == [each["label"] for each in other]
    assert [each["score"] for each in one] == pytest.approx([each["score"] for each in other], abs=1e-5)
    reply = post(server, "/predict", {"instances": ["a"], "nonsense": 1})
    assert (reply.status_code, reply.json()["field"]) == (422, "nonsense")


def test_without_a_name_the_first_model_that_can_answers(loaded: list[ServedModel]) -> None:
    order = ("words", "questions", "reviews", "ranker", "inference")
    models = sorted((each for each in loaded if each.name in order), key=lambda each: order.index(each.name))
    texts = ["a river", "b"]
    with running(models) as server:
        assert post(server, "/predict", {"inputs": "the river"}).json()[0]["label"] in ("dry", "wet", "odd")
        assert len(post(server, "/rerank", {"query": "a", "texts": texts}).json()) == 2
        assert post(server, "/v2/rerank", {"query": "a", "documents": texts}).json()["model"] == "ranker"
        labels = {"inputs": "a", "parameters": {"candidate_labels": ["b", "c"]}}
        assert len(post(server, "/pipeline/zero-shot-classification", labels).json()) == 2
        tasks = post(server, "/predict", {"tasks": [{"id": 1, "data": {"text": "a river"}}]}).json()
        assert tasks["results"][0]["model_version"] == "reviews"


def test_instances_have_the_limit_of_inputs_and_are_computed_together(loaded: list[ServedModel]) -> None:
    (questions,) = (each for each in loaded if each.name == "questions")
    asked = [{"inputs": {"question": "who", "context": "the mill"}}] * 30
    with running([questions], Limits(inputs=30, queued_tokens=60)) as server:
        assert len(post(server, "/predict", {"instances": asked}).json()["predictions"]) == 30
        batches = re.search(r"^bertkit_batches_total\{.*\} (.*)", get(server, "/metrics").text, re.MULTILINE)
        assert batches is not None
        assert float(batches[1]) < 25
        reply = post(server, "/predict", {"instances": [*asked, "a"]})
    assert (reply.status_code, reply.json()["field"]) == (422, "instances")


def test_a_flat_list_of_three_texts_is_told_how_to_be_a_batch(server: Server) -> None:
    reply = post(server, "/", {"inputs": ["a", "b", "c"]})
    assert (reply.status_code, reply.json()["field"]) == (422, "inputs")
    assert reply.json()["hint"] == 'Send a batch as a list of lists: [["one text"], ["another"]].'
    assert len(post(server, "/", {"inputs": [["a"], ["b"], ["c"]]}).json()) == 3
