"""What models do, beside the offline pipeline; the protocols have the rest of the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.server.running import served

from bertkit.inference.pipeline import load
from bertkit.server import abilities
from bertkit.server.batching import Batcher
from bertkit.server.call import Call
from bertkit.server.errors import ServerError
from bertkit.server.jobs import Job
from bertkit.server.models import ServedModel
from bertkit.server.service import Service

T = TypeVar("T")

TEXTS = ["seven wide rivers ran", "the miller", "past the old mill the river ran slowly and wide"]


async def embed_too_wide(call: Call, model: ServedModel) -> object:
    vars(model)["embeddings"] = None  # nothing is computed before the request is checked
    return await abilities.embed(call, model, TEXTS, dimensions=15)


def answer(folder: Path, name: str, work: Callable[[Call, ServedModel], Awaitable[T]]) -> T:
    """The result of ``work`` on one model, without HTTP."""
    service = Service(served(folder, name))
    service.start()

    async def run() -> T:
        call = Call(service, {}, {}, "id")
        return await work(call, call.find_model(None))

    try:
        return asyncio.run(run())
    finally:
        service.stop()


def test_classes_are_those_of_the_offline_pipeline(tiny_models: Path) -> None:
    found = answer(tiny_models, "reviews", lambda call, model: abilities.classify(call, model, TEXTS))
    offline = load(tiny_models / "reviews").classify(TEXTS)
    for labels, expected in zip(found, offline, strict=True):
        assert labels[0].label == expected.label
        assert labels[0].predicted
        assert {each.label: each.score for each in labels} == pytest.approx(dict(expected.scores), abs=1e-5)


def test_entities_are_those_of_the_offline_pipeline(tiny_models: Path) -> None:
    found = answer(tiny_models, "names", lambda call, model: abilities.tag(call, model, TEXTS))
    pipeline = load(tiny_models / "names")
    for text, (_, prediction) in zip(TEXTS, found, strict=True):
        assert [each[:4] for each in prediction.entities] == [each[:4] for each in pipeline.tag(text)]


def test_answers_are_those_of_the_offline_pipeline(tiny_models: Path) -> None:
    context = " ".join(TEXTS)
    found = answer(tiny_models, "questions", lambda call, model: abilities.answer(call, model, "who ran", context))
    assert found.text == load(tiny_models / "questions").answer("who ran", context).text


def test_vectors_may_be_cut_and_have_length_one(tiny_models: Path) -> None:
    offline = load(tiny_models / "words").embed(TEXTS)
    plain = answer(tiny_models, "words", lambda call, model: abilities.embed(call, model, TEXTS, normalize=False))
    assert plain == pytest.approx(offline, abs=1e-5)
    cut = answer(tiny_models, "words", lambda call, model: abilities.embed(call, model, TEXTS, dimensions=3))
    assert cut == pytest.approx(offline[:, :3] / np.linalg.norm(offline[:, :3], axis=1, keepdims=True), abs=1e-5)
    with pytest.raises(ServerError, match="`dimensions` must be from 1 to 14"):
        answer(tiny_models, "words", embed_too_wide)


def test_a_model_that_cannot_do_it_says_what_it_can(tiny_models: Path) -> None:
    with pytest.raises(
        ServerError, match='"words" does not tag words; it can do: fill-mask, feature-extraction'
    ) as caught:
        answer(tiny_models, "words", lambda call, model: abilities.tag(call, model, TEXTS))
    assert caught.value.status == 424


def test_a_window_longer_than_the_models_is_refused(tiny_models: Path) -> None:
    with pytest.raises(ServerError, match="may be 33 at most"):
        answer(tiny_models, "questions", lambda call, model: abilities.answer(call, model, "who", "a", max_length=99))


def test_a_comparison_is_one_job_whose_time_is_that_of_the_request(
    tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    submit = Batcher.submit

    def note(batcher: Batcher, job: Job) -> Future[list[Any]]:
        jobs.append(job)
        return submit(batcher, job)

    async def compare(call: Call, model: ServedModel) -> float:
        await abilities.compare(call, model, "the river", TEXTS)
        return call.usage.inference_seconds

    monkeypatch.setattr(Batcher, "submit", note)
    seconds = answer(tiny_models, "words", compare)
    assert seconds == sum(job.usage.inference_seconds for job in jobs) > 0
