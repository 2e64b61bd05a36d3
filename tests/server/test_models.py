"""Loaded models as the server uses them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.errors import BertkitError, data_error
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.server import models
from bertkit.server.errors import ServerError
from bertkit.server.models import ServedModel

TASKS = {
    "reviews": ("text-classification", "feature-extraction"),
    "topics": ("text-classification", "feature-extraction"),
    "names": ("token-classification", "feature-extraction"),
    "questions": ("question-answering", "feature-extraction"),
    "choices": ("multiple-choice", "feature-extraction"),
    "words": ("fill-mask", "feature-extraction"),
}


def test_models_know_what_they_can_do(loaded: list[ServedModel]) -> None:
    found = {model.name: model.tasks for model in loaded}
    assert {name: found[name] for name in TASKS} == TASKS
    assert [model.name for model in loaded if model.gives_number] == ["stars", "ranker"]
    assert [model.name for model in loaded if model.can_rerank] == ["ranker"]


def test_vectors_of_a_fine_tuned_model_come_from_its_own_encoder(loaded: list[ServedModel]) -> None:
    model = next(each for each in loaded if each.name == "reviews")
    encoded = model.embeddings.encode(["the river ran"])
    (vector,) = model.embeddings.run(encoded)
    assert vector == pytest.approx(load(model.pipeline.folder).embed("the river ran")[0], abs=1e-5)
    assert model.encoder is model.pipeline.task_model.encoder
    assert encoded[0].num_tokens == 5


def test_tokens_and_what_is_cut_off_are_counted(loaded: list[ServedModel]) -> None:
    model = next(each for each in loaded if each.name == "reviews")
    (encoded,) = model.predictions.encode([model.text_input("river " * 60)])
    assert (encoded.num_tokens, encoded.num_truncated) == (33, 29)
    (result,) = model.predictions.run([encoded])
    assert np.shape(result.outputs[0]["logits"]) == (3,)


def test_decoding_may_be_ended_before_each_text(loaded: list[ServedModel]) -> None:
    model = next(each for each in loaded if each.name == "reviews")
    looks: list[int] = []
    encoded = model.predictions.encode([model.text_input("river")] * 3)
    model.predictions.run(encoded, lambda: looks.append(1))
    assert len(looks) == 4  # before the one batch of the model, and before each text


def test_a_real_encoder_makes_vectors_only(minilm: Path) -> None:
    model = ServedModel("minilm", load(minilm))
    assert (model.tasks, model.task) == (("feature-extraction",), None)
    with pytest.raises(ServerError, match="does not classify texts"):
        model.text_input("a")


def test_a_task_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Without its head the model would be served as one that makes vectors only."""
    tokenizer = make_tokenizer()
    record = {"type": "no_such_module:OwnTask", "name": "own"}
    save_model(tmp_path / "own", Model(make_encoder(tokenizer), {}), tokenizer, metadata={"task": record})
    with pytest.raises(BertkitError, match="no_such_module"):
        ServedModel("own", load(tmp_path / "own"))


def test_the_padding_of_encoders_that_compute_it_is_counted(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = next(each for each in loaded if each.name == "reviews")
    encoded = model.embeddings.encode(["the river ran", "river"])
    before = model.padding_tokens
    model.embeddings.run(encoded)
    assert model.padding_tokens == before, "a transformer computes none"
    monkeypatch.setattr(models, "Transformer", type(None))
    model.embeddings.run(encoded)
    assert model.padding_tokens == before + 2


def test_errors_have_no_folders_of_models(loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded[0]
    monkeypatch.setattr(model.pipeline, "folders", (Path("/secret/a"), Path("/secret/b")))
    message = model.describe_error(data_error("/secret/b/config.json is not that of /secret/a."))
    assert message == f"{model.name}/config.json is not that of {model.name}."
