"""The ``cohere`` client against a running server."""

from __future__ import annotations

from collections.abc import Iterator

import cohere
import httpx
import pytest
from cohere.errors import NotFoundError
from tests.server.running import post

from bertkit.inference.pipeline import load
from bertkit.server.models import ServedModel
from bertkit.server.run import Server

DOCUMENTS = ["the mill", "seven coins", "a river ran"]


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client() as client:
        yield client


def expected(loaded: list[ServedModel]) -> list[float]:
    folder = next(model for model in loaded if model.name == "ranker").pipeline.folder
    return [float(str(each.label)) for each in load(folder).predict([("a river", text) for text in DOCUMENTS])]


def test_the_second_version_ranks(server: Server, http: httpx.Client, loaded: list[ServedModel]) -> None:
    client = cohere.ClientV2(api_key="unused", base_url=server.address, httpx_client=http)
    reply = client.rerank(model="ranker", query="a river", documents=DOCUMENTS, top_n=2)
    scores = expected(loaded)
    best = sorted(range(3), key=lambda place: -scores[place])[:2]
    assert [each.index for each in reply.results] == best
    assert [each.relevance_score for each in reply.results] == pytest.approx(
        [scores[place] for place in best], abs=1e-5
    )


def test_the_first_version_returns_documents(server: Server, http: httpx.Client) -> None:
    client = cohere.Client(api_key="unused", base_url=server.address, httpx_client=http)
    reply = client.rerank(model="ranker", query="a river", documents=DOCUMENTS, return_documents=True)
    assert [each.document.text for each in reply.results if each.document] == [
        DOCUMENTS[each.index] for each in reply.results
    ]


def test_documents_are_read_up_to_their_most_tokens(server: Server) -> None:
    long = [f"{DOCUMENTS[0]} {DOCUMENTS[1]}", DOCUMENTS[2]]
    body = {"query": "a river", "model": "ranker", "max_tokens_per_doc": 2}
    cut = post(server, "/v2/rerank", {**body, "documents": long})
    assert (cut.headers["x-truncated-inputs"], cut.headers["x-truncated-tokens"]) == ("2", "3")
    whole = post(server, "/v2/rerank", {**body, "documents": ["the mill", "a river"]})
    assert cut.json()["results"] == whole.json()["results"]
    assert "x-truncated-inputs" not in whole.headers


def test_a_document_that_the_request_and_the_model_cut_is_counted_once(server: Server) -> None:
    """The model reads 33 tokens of query and document, and the request allows 40 of 120."""
    body = {"query": "a river", "model": "ranker", "max_tokens_per_doc": 40}
    cut = post(server, "/v2/rerank", {**body, "documents": ["the river ran past the mill " * 20] * 2})
    assert cut.headers["x-truncated-inputs"] == "2"


def test_a_document_is_a_text_or_has_one(server: Server) -> None:
    body = {"query": "a river", "model": "ranker"}
    assert post(server, "/v2/rerank", {**body, "documents": [{"text": "the mill", "id": 3}]}).status_code == 200
    for wrong in ({"text": None}, {"title": "the mill"}):
        assert post(server, "/v2/rerank", {**body, "documents": [wrong]}).status_code == 422
    for fields, status in ((["text"], 200), (["title"], 422)):
        sent = {**body, "documents": ["the mill"], "rank_fields": fields, "max_chunks_per_doc": 10}
        assert post(server, "/v1/rerank", sent).status_code == status


def test_errors_are_the_clients_own(server: Server, http: httpx.Client) -> None:
    client = cohere.ClientV2(api_key="unused", base_url=server.address, httpx_client=http)
    with pytest.raises(NotFoundError, match=r'no model is named "rerank-v3\.5"'):
        client.rerank(model="rerank-v3.5", query="a river", documents=DOCUMENTS)


def test_one_path_serves_both_protocols(server: Server) -> None:
    ours = post(server, "/rerank", {"query": "a river", "documents": DOCUMENTS, "model": "ranker"}).json()["results"]
    teis = post(server, "/rerank", {"query": "a river", "texts": DOCUMENTS, "model": "ranker"}).json()
    assert [each["relevance_score"] for each in ours] == pytest.approx([each["score"] for each in teis], abs=1e-6)


def test_the_body_of_infinitys_client_is_read(server: Server) -> None:
    body = {"model": "ranker", "query": "a river", "documents": DOCUMENTS, "return_documents": None, "top_n": None}
    shown, raw = (post(server, "/rerank", {**body, "raw_scores": each}).json()["results"] for each in (False, True))
    assert [each["index"] for each in shown] == [each["index"] for each in raw]
    assert all("document" not in each for each in shown)
