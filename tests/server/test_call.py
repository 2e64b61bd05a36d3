"""One request: what it used, and errors without paths."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import get, post, running, served
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.errors import usage_error
from bertkit.model import Model
from bertkit.server.call import Call
from bertkit.server.errors import ServerError
from bertkit.server.jobs import Encoded
from bertkit.server.models import ServedModel
from bertkit.server.service import Service
from bertkit.task_types import SimilarityTask


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def encode(self, inputs: Sequence[Any]) -> list[Encoded]:
        return [Encoded(each, 1) for each in inputs]

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None]) -> list[Any]:
        raise self.error


def run(model: ServedModel, error: Exception) -> None:
    service = Service([model])
    service.batcher.start()
    try:
        asyncio.run(Call(service, {}, {}, "id").run(model, Failing(error), ["a"]))
    finally:
        service.stop()


def test_the_path_of_a_model_is_not_shown(loaded: list[ServedModel]) -> None:
    folder = loaded[0].pipeline.folder
    with pytest.raises(ServerError) as caught:
        run(loaded[0], usage_error(f"{folder} cannot do that"))
    assert (caught.value.status, caught.value.message) == (424, "reviews cannot do that")


def test_a_lack_of_memory_is_a_reason_to_come_back(loaded: list[ServedModel]) -> None:
    with pytest.raises(ServerError) as caught:
        run(loaded[0], MemoryError("DefaultCPUAllocator"))
    assert (caught.value.status, caught.value.retry_after) == (503, 1.0)


def test_the_path_of_a_request_names_the_model(loaded: list[ServedModel]) -> None:
    call = Call(Service(loaded), {}, {"model": "words"}, "id")
    assert call.find_model("reviews").name == "words"
    assert (call.model, call.task) == ("words", "fill-mask")


def test_vectors_come_from_the_first_model_that_was_trained_for_them(tiny_models: Path, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    encoder, task = make_encoder(tokenizer), SimilarityTask(name="s", max_length=33)
    save_model(
        tmp_path / "similar", Model(encoder, task.objectives(encoder)), tokenizer, metadata={"task": task.record()}
    )
    with running([*served(tiny_models, "names", "words"), *served(tmp_path, "similar")]) as server:
        expected = post(server, "/embed", {"inputs": "a river", "model": "similar"}).json()
        for path in ("/embed", "/pipeline/feature-extraction"):
            assert post(server, path, {"inputs": "a river"}).json() == expected
        assert post(server, "/v1/embeddings", {"input": "a river"}).json()["model"] == "similar"
        inputs = {"inputs": {"source_sentence": "a river", "sentences": ["the mill"]}}
        cosines = [post(server, "/similarity", {**inputs, **named}).json() for named in ({}, {"model": "similar"})]
        assert cosines[0] == cosines[1]
        assert get(server, "/pipeline/sentence-similarity/info").json()["model_id"] == "similar"
        assert get(server, "/info").json()["model_id"] == "names"
