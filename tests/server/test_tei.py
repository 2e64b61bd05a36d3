"""The routes of text-embeddings-inference, as its users call them."""

from __future__ import annotations

import json
import math
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.running import get, post, running, served
from tests.tiny_bert import SENTENCES

from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Tokenizer
from bertkit.encoders.elmo import tiny
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.server import models, tei
from bertkit.server.models import ServedModel
from bertkit.server.run import Server
from bertkit.text.words import train


def test_one_text_is_flat_and_a_batch_is_nested(server: Server) -> None:
    one = post(server, "/predict", {"inputs": "the river"}).json()
    batch = post(server, "/predict", {"inputs": [["the river"], ["the mill"]]}).json()
    assert {each["label"] for each in one} == {"dry", "wet", "odd"}
    assert [each["score"] for each in batch[0]] == pytest.approx([each["score"] for each in one], abs=1e-6)
    assert len(batch) == 2


def test_a_query_that_is_repeated_too_often_is_refused(server: Server) -> None:
    """A body of 100 kB would be tokenized for minutes."""
    found = post(server, "/rerank", {"query": "a " * 50_000, "texts": ["b"] * 21, "model": "ranker", "truncate": True})
    assert found.status_code == 422
    assert "the texts have 2,100,0" in found.text
    found = post(server, "/rerank", {"query": "a", "texts": ["b"] * 21, "model": "ranker"})
    assert len(found.json()) == 21


def test_two_texts_are_one_pair(server: Server) -> None:
    found = post(server, "/predict", {"inputs": ["the river", "the mill"], "model": "inference"}).json()
    assert {each["label"] for each in found} == {"entailment", "neutral", "contradiction"}
    refused = post(server, "/predict", {"inputs": ["the river", "the mill"], "model": "reviews"})
    assert (refused.status_code, refused.json()["field"]) == (422, "inputs")
    body = {"inputs": [["the river"], ["the river", "the mill"]], "model": "reviews"}
    refused = post(server, "/predict", body)
    assert (refused.status_code, refused.json()["field"]) == (422, "inputs[1]")
    advice = 'Send a text, or several, each in a list: [["one"], ["two"]].'
    assert refused.json()["error"] == f'the model "reviews" reads one text, not two. {advice}'
    refused = post(server, "/predict", {"inputs": [["the river", "the mill"], ["the river"]], "model": "inference"})
    assert (refused.status_code, refused.json()["field"]) == (422, "inputs[1]")
    assert (
        refused.json()["error"]
        == 'the model "inference" reads two texts, not one. Send {"text": ..., "text_pair": ...}, or a list of pairs.'
    )


def test_raw_scores_have_no_activation(server: Server) -> None:
    raw = post(server, "/predict", {"inputs": "the river", "raw_scores": True}).json()
    scores = np.exp([each["score"] for each in raw])
    plain = post(server, "/predict", {"inputs": "the river"}).json()
    assert [each["score"] for each in plain] == pytest.approx(list(scores / scores.sum()))


def test_texts_are_ranked(server: Server) -> None:
    texts = ["the mill", "seven coins", "a river ran"]
    body = {"query": "a river", "texts": texts, "return_text": True, "model": "ranker"}
    ranked = post(server, "/rerank", body).json()
    assert [each["score"] for each in ranked] == sorted((each["score"] for each in ranked), reverse=True)
    assert all(each["text"] == texts[each["index"]] for each in ranked)


def test_the_scores_of_a_ranker_of_another_library_are_shares(tiny_models: Path, tmp_path: Path) -> None:
    """As those of text-embeddings-inference, whatever the model was saved with; ms-marco-MiniLM has an identity."""
    shutil.copytree(tiny_models / "ranker", tmp_path / "ranker")
    (tmp_path / "ranker" / "bertkit.json").unlink()
    path = tmp_path / "ranker" / "config.json"
    identity = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
    path.write_text(json.dumps(json.loads(path.read_text()) | identity))
    body = {"query": "a river", "texts": ["the mill", "seven coins"]}
    with running([ServedModel("ranker", load(tmp_path / "ranker"))]) as server:
        ranked = post(server, "/rerank", body).json()
        raw = post(server, "/rerank", {**body, "raw_scores": True}).json()
        cohere = post(server, "/v2/rerank", {"query": body["query"], "documents": body["texts"]}).json()["results"]
    expected = [1 / (1 + math.exp(-each["score"])) for each in raw]
    assert [each["score"] for each in ranked] == pytest.approx(expected)
    assert [each["relevance_score"] for each in cohere] == pytest.approx(expected)


def test_too_many_tokens_are_not_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tei, "_ANSWER_TOKENS", 5)
    assert post(server, "/tokenize", {"inputs": ["the river", "the mill"]}).status_code == 200
    reply = post(server, "/tokenize", {"inputs": ["the river ran", "the mill ran"]})
    assert (reply.status_code, reply.json()["field"]) == (422, "inputs")
    assert "more than 5 tokens" in reply.text


def test_a_classifier_is_not_a_ranker(server: Server) -> None:
    reply = post(server, "/rerank", {"query": "a", "texts": ["b"], "model": "stars"})
    assert "is not a re-ranker: it reads one text" in reply.text
    reply = post(server, "/rerank", {"query": "a", "texts": ["b"], "model": "reviews"})
    assert (reply.status_code, reply.json()["error_type"]) == (424, "Backend")
    assert "is not a re-ranker" in reply.headers["x-error-message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": "a", "prompt_name": "query"}),
        ("/tokenize", {"inputs": "a", "prompt_name": "query"}),
        (
            "/similarity",
            {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"prompt_name": "query"}},
        ),
    ],
)
def test_a_prompt_that_the_model_does_not_have_is_refused(server: Server, path: str, body: dict[str, Any]) -> None:
    reply = post(server, path, body)
    assert reply.status_code == 422
    assert "has no such prompt; it has none: send the text with it" in reply.headers["x-error-message"]


def test_a_prompt_of_the_model_is_put_before_the_text(
    server: Server, loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded[0]
    embedding = replace(model.pipeline.embedding, model_config={"prompts": {"query": "old ", "document": ""}})
    monkeypatch.setitem(vars(model.pipeline), "embedding", embedding)
    plain, longer, same, asked = (
        post(server, "/embed", {"inputs": text, "prompt_name": name}).json()
        for text, name in (("mill", None), ("old mill", None), ("mill", "document"), ("mill", "query"))
    )
    assert asked == longer
    assert same == plain != longer
    reply = post(server, "/embed", {"inputs": "mill", "prompt_name": "other"})
    assert "it has: query, document" in reply.headers["x-error-message"]


def test_a_prompt_that_is_no_part_of_the_pooling_is_refused(
    loaded: list[ServedModel], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded[0]
    config = {"prompts": {"query": "old ", "document": ""}}
    embedding = replace(model.pipeline.embedding, model_config=config, include_prompt=False)
    monkeypatch.setitem(vars(model.pipeline), "embedding", embedding)
    reply = post(server, "/embed", {"inputs": "mill", "prompt_name": "query"})
    assert (reply.status_code, reply.json()["field"]) == (422, "prompt_name")
    assert "leave the tokens of a prompt out" in reply.json()["error"]
    assert post(server, "/embed", {"inputs": "mill", "prompt_name": "document"}).status_code == 200


def test_a_pair_that_is_too_long_says_that_two_texts_were_read(server: Server) -> None:
    reply = post(server, "/rerank", {"query": "river " * 40, "texts": ["a", "b"], "model": "ranker"})
    assert reply.status_code == 422
    assert reply.json()["hint"].startswith("Shorten one of the two texts, or ask for its end to be cut off")


def test_every_token_has_a_state(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    states = post(server, "/embed_all", {"inputs": ["the river", "a"]}).json()
    assert [len(each) for each in states] == [4, 3]
    (vector,) = post(server, "/embed", {"inputs": "the river", "normalize": False}).json()
    assert np.mean(states[0], axis=0) == pytest.approx(vector, abs=1e-5)
    long = {"inputs": "river " * 90, "parameters": {"truncate": True}}
    assert len(post(server, "/embed_all", long).json()[0]) == 41
    assert post(server, "/embed_all", {**long, "truncation_direction": "left"}).status_code == 422
    monkeypatch.setattr(models, "_ANSWER_NUMBERS", 9)
    assert post(server, "/embed_all", {"inputs": "the river"}).status_code == 422


def test_sparse_vectors_are_another_kind_of_model(server: Server) -> None:
    reply = post(server, "/embed_sparse", {"inputs": "the river"})
    assert (reply.status_code, reply.json()["error_type"]) == (424, "Backend")


def test_vectors_are_nested_and_have_length_one(server: Server) -> None:
    one, two = (
        post(server, "/embed", {"inputs": each, "truncate": True}).json() for each in ("a river", ["a", "river"])
    )
    assert (np.shape(one), np.shape(two)) == ((1, 14), (2, 14))
    assert np.linalg.norm(one[0]) == pytest.approx(1, abs=1e-6)
    plain = post(server, "/embed", {"inputs": "a river", "normalize": False}).json()
    assert np.linalg.norm(plain[0]) != pytest.approx(1, abs=1e-3)


def test_truncation_is_done_only_if_asked_and_is_reported(server: Server) -> None:
    long = {"inputs": ["a river", "river " * 90], "model": "words"}
    refused = post(server, "/embed", long)
    assert refused.status_code == 422
    assert refused.json()["field"] == "inputs[1]"
    assert refused.json()["error"].startswith(
        "Input validation error: `inputs` must have less than 42 tokens. Given: 92"
    )
    cut = post(server, "/embed", {**long, "truncate": True})
    assert cut.status_code == 200
    assert (cut.headers["x-truncated-inputs"], cut.headers["x-truncated-tokens"]) == ("1", "51")
    assert "x-truncated-inputs" not in post(server, "/embed", {"inputs": "a river"}).headers


def test_tokens_have_characters_and_ids_become_texts(server: Server) -> None:
    (tokens,) = post(server, "/tokenize", {"inputs": "the river"}).json()
    assert (tokens[0]["text"], tokens[0]["special"], tokens[0]["start"]) == ("[CLS]", True, None)
    assert "the river"[tokens[1]["start"] : tokens[1]["stop"]] == "the"
    (written,) = post(server, "/tokenize", {"inputs": "The Rivers"}).json()
    assert "".join(each["text"] for each in written[1:-1]) == "TheRivers"
    ids = [each["id"] for each in tokens]
    assert post(server, "/decode", {"ids": ids}).json() == ["the river"]
    assert post(server, "/decode", {"ids": [[7, 10_000]]}).status_code == 422


def test_many_ids_are_decoded_beside_other_requests(
    server: Server, loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of a megabyte takes a third of a second."""
    threads: list[str] = []
    decode = type(loaded[0].pipeline.tokenizer).decode

    def note(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
        threads.append(threading.current_thread().name)
        return decode(tokenizer, ids)

    monkeypatch.setattr(type(loaded[0].pipeline.tokenizer), "decode", note)
    assert post(server, "/decode", {"ids": [[7], [8]]}).status_code == 200
    assert [name.partition("_")[0] for name in threads] == ["asyncio", "asyncio"]


def test_info_describes_the_model(server: Server) -> None:
    described = get(server, "/info").json()
    assert described["model_type"]["classifier"]["id2label"] == {"0": "dry", "1": "wet", "2": "odd"}
    assert get(server, "/info?model=words").json()["model_type"] == {"embedding": {"pooling": "mean"}}
    assert get(server, "/info?model=ranker").json()["model_type"]["reranker"]["id2label"] == {"0": "LABEL_0"}


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("text-classification", "reviews"),
        ("zero-shot-classification", "inference"),
        ("token-classification", "names"),
        ("fill-mask", "words"),
        ("feature-extraction", "reviews"),
    ],
)
def test_info_of_a_task_describes_the_model_that_answers_for_it(server: Server, task: str, name: str) -> None:
    assert get(server, f"/pipeline/{task}/info").json()["model_id"] == name
    assert get(server, f"/pipeline/{task}/info?model=words").json()["model_id"] == "words"


def test_info_of_an_unknown_task_is_the_error_of_a_request_for_it(server: Server) -> None:
    asked, posted = (
        get(server, "/pipeline/summarization/info"),
        post(server, "/pipeline/summarization", {"inputs": "a"}),
    )
    assert asked.status_code == posted.status_code == 404
    assert asked.json() == posted.json()


def test_times_and_tokens_are_in_the_headers(server: Server) -> None:
    headers = post(server, "/embed", {"inputs": "the river"}).headers
    assert headers["x-compute-tokens"] == "4"
    assert headers["x-compute-characters"] == "9"
    assert float(headers["x-inference-time"]) > 0
    assert float(headers["x-total-time"]) >= float(headers["x-inference-time"])


def test_sentences_are_compared(server: Server) -> None:
    body = {"inputs": {"source_sentence": "a river", "sentences": ["a river", "old coins"]}, "parameters": None}
    first, second = post(server, "/similarity", body).json()
    assert first == pytest.approx(1, abs=1e-5)
    assert second < first


def test_only_the_end_of_a_text_can_be_cut_off(server: Server) -> None:
    left = {"truncate": True, "truncation_direction": "left"}
    assert post(server, "/predict", {"inputs": "the river", **left}).status_code == 422
    assert post(server, "/rerank", {"query": "a", "texts": ["b"], "model": "ranker", **left}).status_code == 422
    assert post(server, "/predict", {"inputs": "the river", "truncation_direction": "Right"}).status_code == 200


def test_ids_beside_lists_of_ids_are_refused(server: Server) -> None:
    reply = post(server, "/decode", {"ids": [7, [8]]})
    assert (reply.status_code, reply.json()["field"]) == (422, "ids")


def test_words_with_characters_have_no_ids_to_show(tmp_path: Path) -> None:
    save_model(tmp_path / "elmo", Model(tiny(), {}), train(SENTENCES, vocab_size=30, word_length=7), metadata={})
    with running(served(tmp_path, "elmo")) as server:
        reply = post(server, "/tokenize", {"inputs": "the river"})
    assert reply.status_code == 422
    assert "without single ids" in reply.json()["error"]
