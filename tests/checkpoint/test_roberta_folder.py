"""A folder of RoBERTa goes the way of BERT's: written, loaded, and every fault named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.transformers_folders import reconfigure, rewrite, save_without_metadata
from torch import nn

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.roberta import Roberta, RobertaConfig
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.text.byte_bpe import ByteLevelBPE, train


def ask_words(encoder: Encoder) -> Mapping[str, Objective]:
    assert isinstance(encoder, Roberta)
    return {"mlm": MaskedLanguageModel(encoder.embeddings.word)}


def ask_classes(encoder: Encoder) -> Mapping[str, Objective]:
    return {"class": SequenceClassification(encoder.hidden_size, 5)}


@pytest.fixture
def tokens() -> ByteLevelBPE:
    return train(["a fox and an ox", "the ox's den, and the fox"] * 2, vocab_size=277)


@pytest.fixture
def encoder(tokens: ByteLevelBPE) -> Roberta:
    shape = RobertaConfig(
        vocab_size=tokens.vocab_size,
        hidden_size=14,
        num_layers=3,
        num_heads=2,
        intermediate_size=37,
        num_positions=41,
        dropout=0.2,
        attention_dropout=0.3,
        activation="gelu_tanh",
        layer_norm_eps=1e-7,
        initializer_range=0.03,
    )
    encoder = Roberta(shape)
    for weight in encoder.parameters():
        nn.init.normal_(weight, mean=0.1, std=0.5)
    return encoder


@pytest.fixture
def model(encoder: Roberta) -> Model:
    return Model(encoder, ask_words(encoder))


@pytest.fixture
def folder(tmp_path: Path, model: Model, tokens: ByteLevelBPE) -> Path:
    """Masked words as another maker would write them: without our record."""
    return save_without_metadata(tmp_path, model, tokens)


def test_a_saved_model_is_loaded_bit_for_bit(folder: Path, model: Model, tokens: ByteLevelBPE, tmp_path: Path) -> None:
    again = ModelFolder.open(folder).load_model(ask_words)
    for name, tensor in model.state_dict().items():
        assert "pooler" in name or torch.equal(again.state_dict()[name], tensor), name
    assert ModelFolder.open(folder).config == model.encoder.config
    assert ModelFolder.open(folder).metadata["architectures"] == ["RobertaForMaskedLM"]
    loaded = ModelFolder.open(folder).tokenizer
    assert loaded.fingerprint == tokens.fingerprint
    save_model(tmp_path / "again", again, loaded, metadata={})
    for name in ("model.safetensors", "config.json", "tokenizer.json", "vocab.json", "merges.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_weights_have_the_names_of_transformers(
    folder: Path, encoder: Roberta, tokens: ByteLevelBPE, tmp_path: Path
) -> None:
    stored = load_file(folder / "model.safetensors")
    assert {"lm_head.dense.weight", "lm_head.layer_norm.bias", "lm_head.bias"} <= set(stored)
    assert not any("pooler" in name for name in stored), "no head reads it, and RobertaForMaskedLM has none"
    assert not any(name.startswith(("cls.", "lm_head.decoder")) for name in stored)
    classes = Model(encoder, ask_classes(encoder))
    save_model(tmp_path / "classes", classes, tokens, metadata={"task": {"labels": list("abcde")}})
    stored = load_file(tmp_path / "classes" / "model.safetensors")
    assert torch.equal(stored["classifier.dense.weight"], encoder.pooler.dense.weight)
    assert stored["classifier.out_proj.weight"].shape == (5, 14)
    assert not any("pooler" in name for name in stored)
    assert json.loads((tmp_path / "classes" / "config.json").read_text())["id2label"]["4"] == "e"


SHAPES = {"weight": (14,), "bias": ()}


def test_a_missing_head_is_named_as_in_transformers(folder: Path) -> None:
    with pytest.raises(BertkitError, match=r'no "class" head: nothing named classifier\.out_proj\.weight'):
        ModelFolder.open(folder).load_model(ask_classes)
    ModelFolder.open(folder).load_encoder()
    rewrite(folder, **{f"classifier.out_proj.{part}": torch.zeros(5, *width) for part, width in SHAPES.items()})
    with pytest.raises(BertkitError, match='has no pooler, which the "class" head needs'):
        ModelFolder.open(folder).load_model(ask_classes)


def test_a_pooler_beside_a_classifier_is_not_used(model: Model, tokens: ByteLevelBPE, tmp_path: Path) -> None:
    """As in roberta-large-mnli: the classifier of Hugging Face has a layer of its own in place of the pooler."""
    classifier = Model(model.encoder, ask_classes(model.encoder))
    save_model(tmp_path / "model", classifier, tokens, metadata={})
    (tmp_path / "model" / "bertkit.json").unlink()  # which has the length of the file
    pooler = {"weight": torch.ones(14, 14), "bias": torch.ones(14)}
    rewrite(tmp_path / "model", **{f"roberta.pooler.dense.{part}": each for part, each in pooler.items()})
    loaded = ModelFolder.open(tmp_path / "model").load_model(ask_classes)
    for name, weight in classifier.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight), name


def test_a_copy_of_the_word_embeddings_is_ignored_if_it_is_equal(folder: Path) -> None:
    word = load_file(folder / "model.safetensors")["roberta.embeddings.word_embeddings.weight"]
    rewrite(folder, **{"lm_head.decoder.weight": word.clone(), "roberta.embeddings.position_ids": torch.arange(41)})
    ModelFolder.open(folder).load_model(ask_words)
    rewrite(folder, **{"lm_head.decoder.weight": word + 1})
    with pytest.raises(
        BertkitError, match=r"lm_head\.decoder\.weight differs from embeddings\.word_embeddings\.weight"
    ):
        ModelFolder.open(folder).load_model(ask_words)


def test_absent_keys_of_a_config_have_the_defaults_of_transformers(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "roberta"}')
    wanted = RobertaConfig(vocab_size=50_265, num_positions=512, num_segments=2, layer_norm_eps=1e-12)
    assert ModelFolder.open(folder).config == wanted


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_decoder": True}, 'is_decoder is "True"; bertkit reads "False"'),
        ({"hidden_act": "silu"}, 'hidden_act is "silu"; bertkit supports gelu'),
        ({"max_position_embeddings": 2}, "num_positions is 2; it must be 3 or more"),
        ({"max_position_embeddings": 43}, "position_embeddings.weight as 41 x 14 instead of 43 x 14"),
        ({"num_hidden_layers": 4}, r"config\.json says 4 layers and model\.safetensors has 3"),
    ],
)
def test_a_config_that_does_not_match_the_weights_is_an_error(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    reconfigure(folder, **changes)
    with pytest.raises(BertkitError, match=message):
        ModelFolder.open(folder).load_encoder()


def test_positions_that_begin_at_another_token_than_the_padding_are_an_error(folder: Path) -> None:
    reconfigure(folder, pad_token_id=0)
    with pytest.raises(BertkitError, match=r"config\.json: pad_token_id is 0, and the tokenizer pads with 1"):
        _ = ModelFolder.open(folder).tokenizer
