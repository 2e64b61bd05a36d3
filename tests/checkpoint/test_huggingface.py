"""Hugging Face's names of tensors: every form that exists is loaded, and every fault is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.checkpoint.transformers_folders import rewrite, save_without_metadata
from torch import Tensor

from bertkit.checkpoint.huggingface import objective_from_hf, tensors_to_hf
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Encoder, Objective
from bertkit.encoder_types.spec import HuggingFaceSpec
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.pretraining.task import PretrainingTask
from bertkit.text.wordpiece import WordPiece


def pretraining(encoder: Encoder) -> Mapping[str, Objective]:
    assert isinstance(encoder, Bert)
    return PretrainingTask().build_objectives(encoder)


@pytest.fixture
def model(encoder: Bert) -> Model:
    return Model(encoder, pretraining(encoder))


@pytest.fixture
def hf_folder(tmp_path: Path, model: Model, tokenizer: WordPiece) -> Path:
    """A pre-trained model as another maker would write it: without our record."""
    return save_without_metadata(tmp_path, model, tokenizer)


def rename(folder: Path, old: str, new: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({name.replace(old, new): tensor for name, tensor in tensors.items()}, weights(folder))


def weights(folder: Path) -> Path:
    return folder / "model.safetensors"


def assert_same(folder: Path, model: Model) -> None:
    loaded = ModelFolder.open(folder).load_model(pretraining).state_dict()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded[name], tensor), name


def test_a_head_without_a_transform_has_the_other_names_of_its_table(model: Model) -> None:
    """The encoder has a prediction layer of its own, and no table for the masked-LM head."""
    head = MaskedLanguageModel(torch.nn.Embedding(37, 14), transform=False)
    tensors = {"cls.predictions.bias": torch.arange(37.0)}
    state = objective_from_hf(HuggingFaceSpec(), "mlm", head, tensors, "weights")
    assert list(state) == ["bias"]
    assert torch.equal(state["bias"], tensors["cls.predictions.bias"])
    names = tensors_to_hf(Model(model.encoder, {"mlm": head}))
    assert [name for name in names if not name.startswith("bert.")] == ["cls.predictions.bias"]


# --- names ----------------------------------------------------------------------------------------------------------


def test_names_are_those_of_transformers(hf_folder: Path) -> None:
    names = set(load_file(weights(hf_folder)))
    assert "bert.encoder.layer.2.attention.self.query.weight" in names
    assert "cls.predictions.bias" in names
    assert not any("qkv" in name or name.startswith("encoder.") for name in names)


def test_a_folder_of_transformers_is_loaded(hf_folder: Path, model: Model) -> None:
    assert_same(hf_folder, model)


def test_names_without_the_prefix_are_loaded(hf_folder: Path, model: Model) -> None:
    rename(hf_folder, "bert.", "")
    assert_same(hf_folder, model)


def test_old_names_of_layer_norm_are_loaded(hf_folder: Path, model: Model) -> None:
    rename(hf_folder, "LayerNorm.weight", "LayerNorm.gamma")
    rename(hf_folder, "LayerNorm.bias", "LayerNorm.beta")
    assert_same(hf_folder, model)


def test_buffers_are_ignored(hf_folder: Path, model: Model) -> None:
    rewrite(hf_folder, **{"bert.embeddings.position_ids": torch.arange(41)[None]})
    assert_same(hf_folder, model)


def test_heads_of_other_tasks_are_ignored(hf_folder: Path, model: Model) -> None:
    rewrite(hf_folder, **{"qa_outputs.weight": torch.ones(2, 14), "classifier.bias": torch.ones(3)})
    assert_same(hf_folder, model)


@pytest.mark.parametrize("missing", ["word_embeddings", "cls.predictions.bias", "nothing"])
def test_copies_of_tied_weights_are_ignored_or_used(hf_folder: Path, model: Model, missing: str) -> None:
    """One of the two may be what is stored, or both."""
    stored = load_file(weights(hf_folder))
    copies: dict[str, Tensor | None] = {
        "cls.predictions.decoder.weight": stored["bert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": stored["cls.predictions.bias"].clone(),
    }
    rewrite(hf_folder, **copies, **dict.fromkeys((name for name in stored if missing in name), None))
    assert_same(hf_folder, model)


def test_a_decoder_that_is_not_tied_is_an_error(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"cls.predictions.decoder.weight": torch.ones(37, 14)})
    ModelFolder.open(hf_folder).load_encoder()
    with pytest.raises(BertkitError, match=r"decoder\.weight differs from embeddings\.word_embeddings\.weight"):
        ModelFolder.open(hf_folder).load_model(pretraining)


def test_half_precision_is_converted_to_float32(hf_folder: Path, model: Model) -> None:
    rewrite(hf_folder, **{name: tensor.half() for name, tensor in load_file(weights(hf_folder)).items()})
    for weight, original in zip(
        ModelFolder.open(hf_folder).load_encoder().parameters(), model.encoder.parameters(), strict=True
    ):
        assert weight.dtype == torch.float32
        assert torch.equal(weight, original.half().float())


def test_a_missing_pooler_is_initialised(hf_folder: Path) -> None:
    """Their masked language models have none."""
    rewrite(hf_folder, **{"bert.pooler.dense.weight": None, "bert.pooler.dense.bias": None})
    torch.manual_seed(7)
    first, second = ModelFolder.open(hf_folder).load_encoder(), ModelFolder.open(hf_folder).load_encoder()
    assert torch.equal(first.state_dict()[FIRST_QKV], second.state_dict()[FIRST_QKV])
    weight = first.get_parameter("pooler.dense.weight")
    assert 0 < weight.abs().max() <= 2 * 0.03
    assert not torch.equal(weight, second.get_parameter("pooler.dense.weight"))
    assert not first.get_parameter("pooler.dense.bias").any()


FIRST_QKV = "layers.0.attention.qkv.weight"


# --- what is wrong with a file --------------------------------------------------------------------------------------


def test_missing_tensors_are_listed(hf_folder: Path) -> None:
    names = [
        f"bert.encoder.layer.1.attention.self.{part}.{kind}" for part in ("query", "key") for kind in ("weight", "bias")
    ]
    rewrite(hf_folder, **dict.fromkeys(names, None))
    with pytest.raises(BertkitError, match=r"lacks encoder\.layer\.1\.attention\.self\.query\.weight, .* and 1 more"):
        ModelFolder.open(hf_folder).load_encoder()


def test_an_incomplete_pooler_is_an_error(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"bert.pooler.dense.bias": None})
    with pytest.raises(BertkitError, match=r"lacks pooler\.dense\.bias"):
        ModelFolder.open(hf_folder).load_encoder()


def test_a_head_that_needs_the_pooler_is_refused_without_one(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"bert.pooler.dense.weight": None, "bert.pooler.dense.bias": None})
    ModelFolder.open(hf_folder).load_model(lambda encoder: {"mlm": pretraining(encoder)["mlm"]})
    with pytest.raises(BertkitError, match=r'has no pooler, which the "nsp" head needs'):
        ModelFolder.open(hf_folder).load_model(pretraining)


def test_a_missing_tensor_of_a_head_is_named(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"cls.predictions.transform.dense.bias": None})
    with pytest.raises(BertkitError, match=r"lacks cls\.predictions\.transform\.dense\.bias"):
        ModelFolder.open(hf_folder).load_model(pretraining)


def test_unknown_tensors_of_the_encoder_are_listed(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"bert.encoder.layer.0.adapter.weight": torch.ones(3)})
    with pytest.raises(BertkitError, match=r"has unknown encoder\.layer\.0\.adapter\.weight"):
        ModelFolder.open(hf_folder).load_encoder()


def test_a_tensor_under_two_names_is_an_error(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"pooler.dense.bias": torch.ones(14)})
    with pytest.raises(BertkitError, match=r"holds pooler\.dense\.bias twice"):
        ModelFolder.open(hf_folder).load_encoder()


def test_a_vocabulary_of_another_size_is_an_error(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"bert.embeddings.word_embeddings.weight": torch.ones(36, 14)})
    with pytest.raises(BertkitError, match=r"has embeddings\.word_embeddings\.weight as 36 x 14 instead of 37 x 14"):
        ModelFolder.open(hf_folder).load_encoder()


def test_a_transposed_tensor_is_an_error(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"bert.encoder.layer.0.intermediate.dense.weight": torch.ones(14, 23)})
    with pytest.raises(BertkitError, match="as 14 x 23 instead of 23 x 14"):
        ModelFolder.open(hf_folder).load_encoder()


def test_integer_weights_are_an_error(hf_folder: Path) -> None:
    rewrite(hf_folder, **{"bert.pooler.dense.weight": torch.ones(14, 14, dtype=torch.int8)})
    with pytest.raises(BertkitError, match=r"pooler\.dense\.weight as 14 x 14 int8 instead of 14 x 14"):
        ModelFolder.open(hf_folder).load_encoder()


def test_numbers_of_4_bits_are_an_error(hf_folder: Path) -> None:
    packed = torch.zeros(14, 14, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    rewrite(hf_folder, **{"bert.pooler.dense.weight": packed})
    with pytest.raises(BertkitError, match=r"pooler\.dense\.weight is in float4_e2m1fn_x2; convert it to float32\.$"):
        ModelFolder.open(hf_folder).load_encoder()


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (2, r"config\.json says 2 layers and model\.safetensors has 3"),
        (4, r"config\.json says 4 layers and model\.safetensors has 3"),
        (1_000_000_000, "num_layers is 1000000000; it must be from 1 to 10,000"),
    ],
)
def test_another_number_of_layers_is_an_error(hf_folder: Path, layers: int, message: str) -> None:
    config = json.loads((hf_folder / "config.json").read_text())
    (hf_folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
    with pytest.raises(BertkitError, match=message):
        ModelFolder.open(hf_folder).load_encoder()


def test_names_of_another_program_are_shown(hf_folder: Path) -> None:
    rename(hf_folder, "bert.", "module.bert.")
    with pytest.raises(BertkitError, match=r"safetensors has no layer of BERT, but module\.bert\.encoder\.layer\."):
        ModelFolder.open(hf_folder).load_encoder()


def test_many_faults_are_reported_in_one_line(hf_folder: Path) -> None:
    rename(hf_folder, ".attention.", ".attend.")
    with pytest.raises(BertkitError) as caught:
        ModelFolder.open(hf_folder).load_encoder()
    assert "lacks" in str(caught.value)
    assert "has unknown" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700 + 3 * len(str(hf_folder))
