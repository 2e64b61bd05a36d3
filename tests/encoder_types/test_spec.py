from __future__ import annotations

import dataclasses

from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoders import bert, gpt


def test_the_model_type_is_the_name_of_the_module_by_default() -> None:
    assert bert.SPEC.model_type == "bert"
    assert gpt.SPEC.model_type == "openai-gpt", "stated, because Hugging Face calls it so"


def test_the_model_type_of_a_module_outside_bertkit_is_its_path() -> None:
    @dataclasses.dataclass(frozen=True)
    class Config:
        vocab_size: int = 99

    Config.__module__ = "my_lab.bag"
    spec = EncoderSpec(title="A", encoder=bert.Bert, config=Config, load_tokenizer=bert.SPEC.load_tokenizer)
    assert spec.model_type == "my_lab.bag"


def test_only_the_encoder_its_configuration_and_its_tokenizer_are_required() -> None:
    required = {each.name for each in dataclasses.fields(EncoderSpec) if each.default is each.default_factory}
    assert required == {"title", "encoder", "config", "load_tokenizer"}
    assert HuggingFaceSpec().weights == {}
    assert PretrainingDefaults().objectives == ("mlm",)
