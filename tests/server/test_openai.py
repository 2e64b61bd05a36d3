"""The ``openai`` client against a running server, with real vectors where they are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openai
import pytest
from tests.server.running import get, post, running

from bertkit.inference.pipeline import load
from bertkit.server.models import ServedModel
from bertkit.server.run import Server


def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.address}/v1", api_key="unused", max_retries=0)


def test_vectors_are_those_of_the_real_model(minilm: Path) -> None:
    texts = ["A man is eating food.", "The girl carries a baby.", "Ein Mann isst."]
    tokenizer = load(minilm).tokenizer
    with running([ServedModel("minilm", load(minilm))]) as server:
        for format in ({}, {"encoding_format": "float"}):  # by default the client asks for base64
            reply = client(server).embeddings.create(model="minilm", input=texts, extra_body=format)
            found = np.array([each.embedding for each in reply.data])
            assert found == pytest.approx(load(minilm).embed(texts, normalize=True), abs=1e-5)
            tokens = sum(len(tokenizer.encode(text).ids) + 2 for text in texts)
            assert reply.usage.prompt_tokens == reply.usage.total_tokens == tokens
        one = client(server).embeddings.create(model="minilm", input=texts[0], dimensions=7)
        assert np.linalg.norm(one.data[0].embedding) == pytest.approx(1, abs=1e-5)


def test_models_are_listed(server: Server) -> None:
    names = [model.id for model in client(server).models.list()]
    assert names[0] == "reviews"
    assert client(server).models.retrieve("words").id == "words"


def test_an_unknown_model_is_not_found(server: Server) -> None:
    with pytest.raises(openai.NotFoundError, match='no model is named "text-embedding-3-small"'):
        client(server).embeddings.create(model="text-embedding-3-small", input="a river")


def test_an_empty_input_is_a_bad_request(server: Server) -> None:
    with pytest.raises(openai.BadRequestError, match="`input` cannot be empty") as caught:
        client(server).embeddings.create(model="words", input=[])
    assert caught.value.param == "input"


def test_too_long_a_text_is_an_error_that_names_it(server: Server) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="must have less than 42 tokens") as caught:
        client(server).embeddings.create(model="words", input=["a", "river " * 90])
    assert (caught.value.param, caught.value.code) == ("input[1]", "too_long")


def test_classes_of_texts_as_infinity_gives_them(server: Server) -> None:
    reply = post(server, "/classify", {"input": ["the river", "a mill"], "model": "reviews"}).json()
    assert (reply["object"], reply["model"], len(reply["data"])) == ("classify", "reviews", 2)
    assert sum(each["score"] for each in reply["data"][0]) == pytest.approx(1, abs=1e-5)
    raw = post(server, "/classify", {"input": "the river", "model": "reviews", "raw_scores": True}).json()
    assert sum(each["score"] for each in raw["data"][0]) != pytest.approx(1, abs=1e-3)
    assert get(server, "/pipeline/text-classification/health").status_code == 200


def test_the_body_of_infinitys_client_is_read(server: Server) -> None:
    body = {"input": ["the river"], "model": "words"}
    plain = post(server, "/v1/embeddings", body).json()["data"]
    assert post(server, "/embeddings", {**body, "dimensions": 0, "modality": "text"}).json()["data"] == plain


def test_a_format_of_null_is_numbers_as_litellm_sends_it(server: Server) -> None:
    reply = client(server).embeddings.create(model="words", input="a", extra_body={"encoding_format": None})
    assert all(isinstance(each, float) for each in reply.data[0].embedding)


def test_token_ids_of_another_tokenizer_are_refused(server: Server) -> None:
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
        client(server).embeddings.create(model="words", input=[[7, 8, 9]])


def test_token_ids_of_the_models_own_tokenizer_are_read(server: Server, loaded: list[ServedModel]) -> None:
    tokenizer = next(model for model in loaded if model.name == "words").pipeline.tokenizer
    ids = tokenizer.encode("the old river").ids
    named = {"tokenizer": tokenizer.fingerprint}
    by_ids = client(server).embeddings.create(model="words", input=ids, extra_body=named).data[0].embedding
    by_text = client(server).embeddings.create(model="words", input="the old river").data[0].embedding
    assert by_ids == by_text
    with pytest.raises(openai.UnprocessableEntityError, match="the vocabulary has ids from 0 to"):
        client(server).embeddings.create(model="words", input=[7, 10_000], extra_body=named)


def test_both_paths_give_the_same(server: Server) -> None:
    body = {"model": "words", "input": "a river"}
    first, second = (post(server, path, body).json() for path in ("/v1/embeddings", "/embeddings"))
    assert first == second
    assert get(server, "/models").json() == get(server, "/v1/models").json()


def test_lengths_are_those_of_info(server: Server) -> None:
    """A task may read fewer tokens than the encoder, which reads texts for their vectors."""
    names = ("max_input_length", "max_embedding_length")
    described, info = get(server, "/v1/models/reviews").json(), get(server, "/info?model=reviews").json()
    assert [described[name] for name in names] == [info[name] for name in names] == [33, 41]
