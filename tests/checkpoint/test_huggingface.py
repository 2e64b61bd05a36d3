from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.checkpoint.theirs import rewrite, save_as_theirs
from torch import Tensor

from bertkit.checkpoint.config import config_from_hf, config_to_hf
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.task_types.pretraining import PretrainingTask
from bertkit.text.wordpiece import WordPiece


def pretraining(encoder: Encoder) -> Mapping[str, Objective]:
    assert isinstance(encoder, Bert)
    return PretrainingTask().build_objectives(encoder)


@pytest.fixture
def model(encoder: Bert) -> Model:
    return Model(encoder, pretraining(encoder))


@pytest.fixture
def foreign(tmp_path: Path, model: Model, tokenizer: WordPiece) -> Path:
    """A pre-trained model as another maker would write it: without our record."""
    return save_as_theirs(tmp_path, model, tokenizer)


def rename(folder: Path, old: str, new: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({name.replace(old, new): tensor for name, tensor in tensors.items()}, weights(folder))


def weights(folder: Path) -> Path:
    return folder / "model.safetensors"


def assert_same(folder: Path, model: Model) -> None:
    loaded = ModelFolder.open(folder).load_model(pretraining).state_dict()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded[name], tensor), name


# --- config.json ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_a_config_is_written_and_read(encoder: Bert, activation: str) -> None:
    config = replace(encoder.config, activation=activation)
    assert config_from_hf(json.loads(json.dumps(config_to_hf(config))), "config.json") == config


def test_absent_keys_of_a_config_have_their_defaults() -> None:
    assert config_from_hf({}, "config.json") == BertConfig(vocab_size=30522)
    assert config_from_hf({"hidden_act": "gelu_python", "pad_token_id": None}, "config.json").activation == "gelu"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("model_type", "gpt2", 'model_type is "gpt2"; bertkit reads "bert"'),
        ("position_embedding_type", "relative_key", "position_embedding_type"),
        ("is_decoder", "True", "Expected `bool`, got `str` - at `is_decoder`"),
        ("hidden_act", "silu", 'hidden_act is "silu"; bertkit has gelu'),
        ("hidden_act", ["gelu"], "hidden_act"),
        ("num_hidden_layers", "12", "Expected `int`, got `str` - at `num_hidden_layers`"),
        ("hidden_size", -1, "hidden_size is -1; it must be 1 or more"),
        ("num_attention_heads", 5, "not a multiple"),
        ("hidden_dropout_prob", 1.5, "dropout is 1.5"),
        ("pad_token_id", 40_000, "pad_id is 40000"),
    ],
)
def test_an_unsupported_config_is_an_error(field: str, value: Any, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        config_from_hf({field: value}, "theirs/config.json")
    assert str(caught.value).startswith("theirs/config.json")
    assert str(caught.value).count("..") == 0
    assert caught.value.exit_code == 3


# --- names ----------------------------------------------------------------------------------------------------------


def test_names_are_those_of_transformers(foreign: Path) -> None:
    names = set(load_file(weights(foreign)))
    assert "bert.encoder.layer.2.attention.self.query.weight" in names
    assert "cls.predictions.bias" in names
    assert not any("qkv" in name or name.startswith("encoder.") for name in names)


def test_a_folder_of_transformers_is_loaded(foreign: Path, model: Model) -> None:
    assert_same(foreign, model)


def test_names_without_the_prefix_are_loaded(foreign: Path, model: Model) -> None:
    rename(foreign, "bert.", "")
    assert_same(foreign, model)


def test_old_names_of_layer_norm_are_loaded(foreign: Path, model: Model) -> None:
    rename(foreign, "LayerNorm.weight", "LayerNorm.gamma")
    rename(foreign, "LayerNorm.bias", "LayerNorm.beta")
    assert_same(foreign, model)


def test_buffers_are_ignored(foreign: Path, model: Model) -> None:
    rewrite(foreign, **{"bert.embeddings.position_ids": torch.arange(41)[None]})
    assert_same(foreign, model)


def test_heads_of_other_tasks_are_ignored(foreign: Path, model: Model) -> None:
    rewrite(foreign, **{"qa_outputs.weight": torch.ones(2, 14), "classifier.bias": torch.ones(3)})
    assert_same(foreign, model)


@pytest.mark.parametrize("missing", ["word_embeddings", "cls.predictions.bias", "nothing"])
def test_copies_of_tied_weights_are_ignored_or_used(foreign: Path, model: Model, missing: str) -> None:
    """One of the two may be what is stored, or both."""
    stored = load_file(weights(foreign))
    copies: dict[str, Tensor | None] = {
        "cls.predictions.decoder.weight": stored["bert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": stored["cls.predictions.bias"].clone(),
    }
    rewrite(foreign, **copies, **dict.fromkeys((name for name in stored if missing in name), None))
    assert_same(foreign, model)


def test_a_decoder_that_is_not_tied_is_an_error(foreign: Path) -> None:
    rewrite(foreign, **{"cls.predictions.decoder.weight": torch.ones(37, 14)})
    ModelFolder.open(foreign).load_encoder()
    with pytest.raises(BertkitError, match=r"decoder\.weight differs from embeddings\.word_embeddings\.weight"):
        ModelFolder.open(foreign).load_model(pretraining)


def test_half_precision_is_converted_to_float32(foreign: Path, model: Model) -> None:
    rewrite(foreign, **{name: tensor.half() for name, tensor in load_file(weights(foreign)).items()})
    for weight, original in zip(
        ModelFolder.open(foreign).load_encoder().parameters(), model.encoder.parameters(), strict=True
    ):
        assert weight.dtype == torch.float32
        assert torch.equal(weight, original.half().float())


def test_a_missing_pooler_is_initialised(foreign: Path) -> None:
    """Their masked language models have none."""
    rewrite(foreign, **{"bert.pooler.dense.weight": None, "bert.pooler.dense.bias": None})
    torch.manual_seed(7)
    first, second = ModelFolder.open(foreign).load_encoder(), ModelFolder.open(foreign).load_encoder()
    assert torch.equal(first.state_dict()[FIRST_QKV], second.state_dict()[FIRST_QKV])
    weight = first.get_parameter("pooler.dense.weight")
    assert 0 < weight.abs().max() <= 2 * 0.03
    assert not torch.equal(weight, second.get_parameter("pooler.dense.weight"))
    assert not first.get_parameter("pooler.dense.bias").any()


FIRST_QKV = "layers.0.attention.qkv.weight"


# --- what is wrong with a file --------------------------------------------------------------------------------------


def test_missing_tensors_are_listed(foreign: Path) -> None:
    names = [
        f"bert.encoder.layer.1.attention.self.{part}.{kind}" for part in ("query", "key") for kind in ("weight", "bias")
    ]
    rewrite(foreign, **dict.fromkeys(names, None))
    with pytest.raises(BertkitError, match=r"lacks encoder\.layer\.1\.attention\.self\.query\.weight, .* and 1 more"):
        ModelFolder.open(foreign).load_encoder()


def test_an_incomplete_pooler_is_an_error(foreign: Path) -> None:
    rewrite(foreign, **{"bert.pooler.dense.bias": None})
    with pytest.raises(BertkitError, match=r"lacks pooler\.dense\.bias"):
        ModelFolder.open(foreign).load_encoder()


def test_a_head_that_needs_the_pooler_is_refused_without_one(foreign: Path) -> None:
    rewrite(foreign, **{"bert.pooler.dense.weight": None, "bert.pooler.dense.bias": None})
    ModelFolder.open(foreign).load_model(lambda encoder: {"mlm": pretraining(encoder)["mlm"]})
    with pytest.raises(BertkitError, match=r'has no pooler, which the "nsp" head needs'):
        ModelFolder.open(foreign).load_model(pretraining)


def test_a_missing_tensor_of_a_head_is_named(foreign: Path) -> None:
    rewrite(foreign, **{"cls.predictions.transform.dense.bias": None})
    with pytest.raises(BertkitError, match=r"lacks cls\.predictions\.transform\.dense\.bias"):
        ModelFolder.open(foreign).load_model(pretraining)


def test_unknown_tensors_of_the_encoder_are_listed(foreign: Path) -> None:
    rewrite(foreign, **{"bert.encoder.layer.0.adapter.weight": torch.ones(3)})
    with pytest.raises(BertkitError, match=r"has unknown encoder\.layer\.0\.adapter\.weight"):
        ModelFolder.open(foreign).load_encoder()


def test_a_tensor_under_two_names_is_an_error(foreign: Path) -> None:
    rewrite(foreign, **{"pooler.dense.bias": torch.ones(14)})
    with pytest.raises(BertkitError, match=r"holds pooler\.dense\.bias twice"):
        ModelFolder.open(foreign).load_encoder()


def test_a_vocabulary_of_another_size_is_an_error(foreign: Path) -> None:
    rewrite(foreign, **{"bert.embeddings.word_embeddings.weight": torch.ones(36, 14)})
    with pytest.raises(BertkitError, match=r"has embeddings\.word_embeddings\.weight as 36 x 14 instead of 37 x 14"):
        ModelFolder.open(foreign).load_encoder()


def test_a_transposed_tensor_is_an_error(foreign: Path) -> None:
    rewrite(foreign, **{"bert.encoder.layer.0.intermediate.dense.weight": torch.ones(14, 23)})
    with pytest.raises(BertkitError, match="as 14 x 23 instead of 23 x 14"):
        ModelFolder.open(foreign).load_encoder()


def test_integer_weights_are_an_error(foreign: Path) -> None:
    rewrite(foreign, **{"bert.pooler.dense.weight": torch.ones(14, 14, dtype=torch.int8)})
    with pytest.raises(BertkitError, match=r"pooler\.dense\.weight as 14 x 14 int8 instead of 14 x 14"):
        ModelFolder.open(foreign).load_encoder()


@pytest.mark.parametrize("layers", [2, 4, 1_000_000_000])
def test_another_number_of_layers_is_an_error(foreign: Path, layers: int) -> None:
    config = json.loads((foreign / "config.json").read_text())
    (foreign / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
    with pytest.raises(BertkitError, match=rf"config\.json says {layers} layers and model\.safetensors has 3"):
        ModelFolder.open(foreign).load_encoder()


def test_many_faults_are_reported_in_one_line(foreign: Path) -> None:
    rename(foreign, ".attention.", ".attend.")
    with pytest.raises(BertkitError) as caught:
        ModelFolder.open(foreign).load_encoder()
    assert "lacks" in str(caught.value)
    assert "has unknown" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700 + 3 * len(str(foreign))


# --- other forms of weights -----------------------------------------------------------------------------------------


def test_weights_in_several_files(foreign: Path, model: Model) -> None:
    tensors = load_file(weights(foreign))
    weights(foreign).unlink()
    places = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in places if places[name] == file}, foreign / file)
    index = foreign / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    assert_same(foreign, model)
    index.write_text(json.dumps({"weight_map": {**places, "absent": "model-00001-of-00002.safetensors"}}))
    with pytest.raises(BertkitError, match="names 1 tensors that no file has, such as absent"):
        ModelFolder.open(foreign).load_encoder()
    (foreign / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(BertkitError, match=r'names the file "model-00002.*", which is not'):
        ModelFolder.open(foreign).load_encoder()


@pytest.mark.parametrize("zipped", [True, False])
def test_torch_files(foreign: Path, model: Model, zipped: bool) -> None:
    torch.save(load_file(weights(foreign)), foreign / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    weights(foreign).unlink()
    assert_same(foreign, model)


@pytest.mark.parametrize("content", [torch.ones(2), {"a": 3}, ["a"]])
def test_a_torch_file_that_holds_something_else(foreign: Path, content: Any) -> None:
    torch.save(content, foreign / "pytorch_model.bin")
    weights(foreign).unlink()
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin does not hold tensors by name"):
        ModelFolder.open(foreign).load_encoder()


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04" + bytes(99), b"\x80\x02", b"x" * 99])
def test_a_damaged_torch_file(foreign: Path, content: bytes) -> None:
    (foreign / "pytorch_model.bin").write_bytes(content)
    weights(foreign).unlink()
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin is damaged") as caught:
        ModelFolder.open(foreign).load_encoder()
    assert "weights_only" not in str(caught.value)
