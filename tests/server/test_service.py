"""Models by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.server import service
from bertkit.server.errors import ServerError
from bertkit.server.models import ServedModel
from bertkit.server.service import Service, describe_models, load_models


def test_models_are_named_after_their_folders_or_as_asked(tiny_models: Path, tmp_path: Path) -> None:
    run = tmp_path / "a run"
    run.mkdir()
    (run / "model").symlink_to(tiny_models / "reviews")
    words = tiny_models / "words"
    names = [model.name for model in load_models([words, f"fast={words}", run])]
    assert names == ["words", "fast", "a run"]
    assert [model.name for model in load_models([run / "model"])] == ["a run"]
    with pytest.raises(BertkitError, match="two models are named words"):
        load_models([tiny_models / "words", tiny_models / "words"])
    with pytest.raises(BertkitError, match="no model at"):
        load_models([tmp_path / "none"])


def test_the_first_model_that_can_do_it_is_the_default(loaded: list[ServedModel]) -> None:
    service = Service(loaded)
    assert service.model(None).name == "reviews"
    assert service.model(None, "question-answering").name == "questions"
    assert service.model("words", "question-answering").name == "words"
    with pytest.raises(
        ServerError, match=r"no model here can do token-classification\. There are: reviews: text-class"
    ):
        Service(loaded[:1]).model(None, "token-classification")


@pytest.mark.parametrize("name", ["../../etc/passwd", "..\\x", "con", "", "ä" * 300, "$(x)", "a\n\x1b[31mb"])
def test_a_name_is_only_looked_up(loaded: list[ServedModel], name: str) -> None:
    with pytest.raises(ServerError) as caught:
        Service(loaded).model(name)
    assert caught.value.status == 404
    assert caught.value.message.isprintable()


def test_one_line_describes_all(loaded: list[ServedModel]) -> None:
    assert describe_models(Service(loaded[:2]).models).startswith("reviews (text-classification, feature-extraction); ")


def test_a_long_name_is_not_compared_with_those_that_are_known(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a name as long as a body the comparison takes seconds."""
    compared: list[str] = []

    def note(word: str, known: object) -> str:
        compared.append(word)
        return ""

    monkeypatch.setattr(service, "did_you_mean", note)
    with pytest.raises(ServerError, match="no model is named"):
        Service(loaded).model("x" * 2_000_000)
    assert [len(each) for each in compared] == [100]
