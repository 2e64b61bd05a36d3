from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import bertkit.encoders
from bertkit.encoder_types.architectures import (
    configure_architecture,
    find_architecture,
    find_encoder,
    find_spec,
    name_architecture,
    spec_of_config,
)
from bertkit.encoders import bert, elmo, gpt, tagger
from bertkit.errors import BertkitError
from bertkit.pretraining.defaults import architecture_defaults


@pytest.fixture
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are in the package of encoders too."""
    monkeypatch.setattr(bertkit.encoders, "__path__", [*bertkit.encoders.__path__, str(tmp_path)])
    find_encoder.cache_clear()
    yield tmp_path
    find_encoder.cache_clear()


def write(folder: Path, name: str, code: str) -> None:
    (folder / f"{name}.py").write_text(textwrap.dedent(code))


def test_a_configuration_leads_to_its_module() -> None:
    assert name_architecture(bert.BertConfig(vocab_size=99)) == "bert"
    assert name_architecture(elmo.ElmoConfig()) == "elmo", "although its configuration is defined in another module"
    assert spec_of_config(tagger.tiny().config) is tagger.SPEC


@pytest.mark.parametrize(("model_type", "spec"), [("openai-gpt", gpt.SPEC), ("elmo-tagger", tagger.SPEC)])
def test_a_model_type_leads_to_its_spec(model_type: str, spec: object) -> None:
    assert find_spec({"model_type": model_type}, "config.json") is spec


def test_an_unknown_model_type_lists_those_that_are_supported() -> None:
    with pytest.raises(BertkitError, match=r'config.json: model_type is "t5"; bertkit reads "bert", .*"roberta"'):
        find_spec({"model_type": "t5"}, "config.json")


def test_an_unknown_architecture_lists_those_that_can_be_pretrained() -> None:
    with pytest.raises(BertkitError, match=r'no architecture named "berd". Did you mean "bert"\? There are: bert, '):
        find_architecture("berd")


def test_an_encoder_that_is_not_for_pretraining_is_refused() -> None:
    with pytest.raises(BertkitError, match="esim cannot be pre-trained: its SPEC has no pretraining"):
        find_architecture("esim")


@pytest.mark.parametrize("code", ["broken = 7", "raise ImportError('no such library')", "def ("])
def test_a_broken_module_does_not_affect_other_encoders(plug_ins: Path, code: str) -> None:
    write(plug_ins, "broken", code)
    assert find_architecture("bert") is bert.SPEC
    assert name_architecture(elmo.ElmoConfig()) == "elmo"
    assert find_spec({"model_type": "openai-gpt"}, "config.json") is gpt.SPEC
    assert architecture_defaults(gpt.size("tiny", vocab_size=99), vocab_size=99)["task.objectives"] == ("clm",)


def test_a_module_without_a_spec_is_named_when_it_is_used(plug_ins: Path) -> None:
    write(plug_ins, "without_spec", "value = 7")
    with pytest.raises(BertkitError, match=r"without_spec\.py has no SPEC; an encoder module defines one"):
        find_architecture("without_spec")


def test_a_spec_without_sizes_is_named_when_a_size_is_used(plug_ins: Path) -> None:
    write(
        plug_ins,
        "without_size",
        """
        from bertkit.encoder_types.spec import EncoderSpec, PretrainingDefaults
        from bertkit.encoders.bert import Bert, BertConfig
        from bertkit.text.wordpiece import WordPiece

        SPEC = EncoderSpec(
            title="A", encoder=Bert, config=BertConfig, load_tokenizer=WordPiece.load, pretraining=PretrainingDefaults()
        )
        """,
    )
    with pytest.raises(BertkitError, match="the SPEC of without_size has no size, which --size mini needs"):
        configure_architecture("without_size", "mini", vocab_size=99)


def test_a_configuration_without_a_spec_is_an_error_that_names_its_module() -> None:
    @dataclass(frozen=True)
    class Unknown:
        vocab_size: int = 99

    with pytest.raises(BertkitError, match=r"test_architectures has no SPEC with config=Unknown"):
        name_architecture(Unknown())


def test_a_module_outside_bertkit_that_is_missing_is_named() -> None:
    with pytest.raises(BertkitError, match=r"no Python module no_such_lab\.bag: install its package, or add"):
        find_architecture("no_such_lab.bag")
