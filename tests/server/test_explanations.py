"""Attention and saliency as pages of the server."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from selectolax.lexbor import LexborHTMLParser
from tests.server.running import get, post, running, save_tiny_models, served, wait_until
from tests.server.test_forms import send
from tests.tiny_bert import SENTENCES

from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.elmo import tiny
from bertkit.inference.attention_maps import AttentionMaps
from bertkit.inference.pipeline import load
from bertkit.inference.saliency import Saliency, explain
from bertkit.model import Model
from bertkit.server import explanations
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.run import Server
from bertkit.text.words import train


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("reviews", "text-classification"),
        ("inference", "pair"),
        ("names", "token-classification"),
        ("words", "fill-mask"),
    ],
)
def test_the_links_below_a_result_lead_to_both_pages(server: Server, model: str, form: str) -> None:
    links = [
        each.attributes["href"] or "" for each in LexborHTMLParser(send(server, model, form).text).css("#result a")
    ]
    assert len(links) == 2
    for link in links:
        reply = get(server, link)
        assert reply.status_code == 200, reply.text
        assert "</html>" in reply.text


def test_the_contributions_are_those_of_the_command(server: Server, loaded: list[ServedModel]) -> None:
    folder = next(model for model in loaded if model.name == "reviews").pipeline.folder
    expected = explain(load(folder), "the river ran")
    page = LexborHTMLParser(get(server, "/explain?model=reviews&text=the+river+ran").text)
    shown = sorted(float(each.text()) for each in page.css("tbody td"))
    assert shown == pytest.approx(sorted(expected.contributions.tolist()), abs=1e-3)


def test_a_model_that_has_taken_the_place_of_the_loaded_one_is_not_explained(tmp_path: Path) -> None:
    models = served(save_tiny_models(tmp_path), "reviews")
    with running(models) as server:
        shutil.copytree(tmp_path / "inference", tmp_path / "new")
        shutil.rmtree(tmp_path / "reviews")
        (tmp_path / "new").rename(tmp_path / "reviews")
        for page in ("explain", "attention"):
            reply = get(server, f"/{page}?text=the+river+ran")
            assert reply.status_code == 424
            expected = "reviews/model.safetensors has changed since the model was loaded. Load it again."
            assert reply.json()["error"] == expected
        assert post(server, "/predict", {"inputs": "the river ran"}).status_code == 200


def test_long_texts_and_other_models_are_refused(server: Server) -> None:
    assert get(server, "/attention?text=" + "river+" * 70).status_code == 422
    assert get(server, "/attention").status_code == 400
    assert get(server, "/attention?model=none&text=a").status_code == 404
    reply = get(server, "/explain?model=choices&text=a")
    assert reply.status_code == 424
    assert "and not for multiple-choice" in reply.json()["error"]


PAGES = [
    ("explain", "explain", Saliency("good", ("a",), np.ones(1), 1.0, 1.0)),
    ("attention", "read_attention", AttentionMaps(("a",), np.ones((1, 1, 1, 1), dtype=np.float32))),
]


@pytest.mark.parametrize(("page", "function", "found"), PAGES)
@pytest.mark.parametrize(("limits", "most"), [(Limits(), 8), (Limits(requests=2), 2)])
def test_more_pages_than_may_wait_are_refused_and_texts_pass_them(
    loaded: list[ServedModel],
    monkeypatch: pytest.MonkeyPatch,
    page: str,
    function: str,
    found: object,
    limits: Limits,
    most: int,
) -> None:
    release = threading.Event()

    def wait(*arguments: object) -> object:
        assert release.wait(30)
        return found

    monkeypatch.setattr(explanations, function, wait)
    with running(loaded, limits) as server, ThreadPoolExecutor(9) as threads:
        replies = [threads.submit(get, server, f"/{page}?model=reviews&text=a") for _ in range(most)]
        wait_until(lambda: server.service.state.running == most)
        refused = get(server, f"/{page}?model=reviews&text=a")
        assert post(server, "/embed", {"inputs": "a"}).status_code == (200 if most < limits.requests else 429)
        release.set()
        assert [each.result().status_code for each in replies] == [200] * most
        assert server.service.state.running == 0
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1


def test_an_explanation_whose_request_has_ended_is_waited_for_by_the_next(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, running_now = threading.Event(), []

    def wait(*arguments: object) -> Saliency:
        running_now.append(1)
        assert release.wait(30)
        return Saliency("good", ("a",), np.ones(1), 1.0, 1.0)

    monkeypatch.setattr(explanations, "explain", wait)
    with running(loaded, Limits(seconds=0.5)) as server:
        statuses = [get(server, "/explain?model=reviews&text=a").status_code for _ in range(2)]
        assert len(running_now) == 1, "the second one waits for the thread of the first"
        release.set()
        assert get(server, "/explain?model=reviews&text=a").status_code == 200
    assert all(status >= 500 for status in statuses)


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("model=words&text=the+river+ran", 422, "write [MASK] in place of one"),
        ("model=questions&text=who+ran", 422, "give the text with the answer as the pair"),
        ("model=inference&text=the+river", 422, "give the second one as the pair"),
        ("model=reviews&text=the+river&pair=a+mill", 422, "leave out the pair"),
        ("model=choices&text=a", 424, "not for multiple-choice"),
    ],
)
def test_a_text_of_another_form_is_a_mistake_of_the_request(
    server: Server, query: str, status: int, message: str
) -> None:
    reply = get(server, f"/explain?{query}")
    assert (reply.status_code, message in reply.json()["error"]) == (status, True)


def test_an_encoder_that_reads_characters_cannot_be_explained(tmp_path: Path) -> None:
    save_model(tmp_path / "elmo", Model(tiny(), {}), train(SENTENCES, vocab_size=30, word_length=7), metadata={})
    with running(served(tmp_path, "elmo")) as server:
        reply = get(server, "/explain?text=the+river")
    assert (reply.status_code, "has no masked-LM head" in reply.json()["error"]) == (424, True)
