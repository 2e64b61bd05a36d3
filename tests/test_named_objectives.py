"""Objectives by the names of their modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tiny_bert import make_encoder, make_tokenizer

import bertkit.objectives
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.named_objectives import build_objectives, find_objective, list_objectives
from bertkit.objectives.nsp import NextSentencePrediction


def test_every_objective_of_bertkit_is_found_by_its_name() -> None:
    names = list_objectives()
    assert {"mlm", "nsp", "clm", "bilm", "passages"} <= set(names)
    assert len({find_objective(name) for name in names}) == len(names)


def test_heads_are_named_after_their_labels() -> None:
    heads = build_objectives(["nsp", "mlm"], make_encoder(make_tokenizer()))
    assert [(name, type(head)) for name, head in heads.items()] == [
        (find_objective(name).label, find_objective(name)) for name in ("nsp", "mlm")
    ]


def test_a_file_that_is_no_objective_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = "".join(f"class {name}(MaskedLanguageModel):\n    pass\n\n\n" for name in ("One", "Two"))
    (tmp_path / "two.py").write_text(f"from bertkit.objectives.mlm import MaskedLanguageModel\n\n\n{classes}")
    monkeypatch.setattr(bertkit.objectives, "__path__", [*bertkit.objectives.__path__, str(tmp_path)])
    with pytest.raises(BertkitError, match="defines One and Two; it must define one class"):
        find_objective("two")


@pytest.mark.parametrize("name", ["regression", "contrastive"])
def test_an_objective_of_fine_tuning_is_refused_with_those_of_pretraining(name: str) -> None:
    with pytest.raises(BertkitError, match=rf"^{name} is for fine-tuning: .* There are: .*mlm, nsp"):
        find_objective(name)


def test_an_objective_that_builds_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NextSentencePrediction, "build", classmethod(lambda kind, encoder, settings: None))
    with pytest.raises(BertkitError, match="build of NextSentencePrediction gives None, and no objective"):
        build_objectives(["nsp"], make_encoder(make_tokenizer()))


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(BertkitError, match=r'no pre-training objective named "mlmm"\. Did you mean "mlm"') as caught:
        find_objective("mlmm")
    assert caught.value.exit_code == WRONG_USAGE
