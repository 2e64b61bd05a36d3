"""A folder of OpenAI GPT goes the way of BERT's: written, loaded, and every fault named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.transformers_folders import reconfigure, rewrite, save_without_metadata
from torch import nn

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.gpt import Gpt, GptConfig
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import Pipeline
from bertkit.model import Model
from bertkit.objectives.clm import CausalLanguageModel
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.text.bpe import BPE, train

TEXTS = ["a fox and an ox", "the ox's den, and the fox"] * 2


def read_next(encoder: Encoder) -> Mapping[str, Objective]:
    assert isinstance(encoder, Gpt)
    return {"clm": CausalLanguageModel(encoder.embeddings.word)}


@pytest.fixture
def tokens() -> BPE:
    return train(TEXTS, vocab_size=67)


@pytest.fixture
def model(tokens: BPE) -> Model:
    shape = GptConfig(
        vocab_size=tokens.vocab_size,
        hidden_size=14,
        num_layers=3,
        num_heads=2,
        max_positions=41,
        dropout=0.2,
        attention_dropout=0.3,
        layer_norm_eps=1e-7,
        initializer_range=0.03,
    )
    encoder = Gpt(shape)
    for weight in encoder.parameters():
        nn.init.normal_(weight, mean=0.1, std=0.5)
    return Model(encoder, read_next(encoder))


@pytest.fixture
def folder(tmp_path: Path, model: Model, tokens: BPE) -> Path:
    """A language model as another maker would write it: without our record."""
    return save_without_metadata(tmp_path, model, tokens)


def assert_same(folder: Path, model: Model) -> None:
    loaded = ModelFolder.open(folder).load_model(read_next).state_dict()
    assert list(loaded) == list(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded[name], tensor), name
        assert loaded[name].is_contiguous(), name


def test_a_saved_model_is_loaded_bit_for_bit(folder: Path, model: Model, tokens: BPE, tmp_path: Path) -> None:
    assert_same(folder, model)
    assert ModelFolder.open(folder).config == model.encoder.config
    assert ModelFolder.open(folder).metadata["architectures"] == ["OpenAIGPTLMHeadModel"]
    loaded = ModelFolder.open(folder).tokenizer
    assert loaded.fingerprint == tokens.fingerprint
    save_model(tmp_path / "again", ModelFolder.open(folder).load_model(read_next), loaded, metadata={})
    for name in ("model.safetensors", "config.json", "tokenizer.json", "merges.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_weights_are_stored_transposed_as_in_transformers(folder: Path, model: Model) -> None:
    stored = load_file(folder / "model.safetensors")
    assert stored["transformer.h.2.attn.c_attn.weight"].shape == (14, 42)
    assert "lm_head.weight" not in stored
    ours = model.state_dict()["encoder.layers.2.attention.qkv.weight"]
    assert torch.equal(stored["transformer.h.2.attn.c_attn.weight"], ours.T)


def test_an_encoder_alone_and_one_with_a_head_that_gpt_lacks(tmp_path: Path, model: Model, tokens: BPE) -> None:
    save_model(tmp_path / "bare", Model(model.encoder, {}), tokens, metadata={})
    assert "h.0.ln_1.weight" in load_file(tmp_path / "bare" / "model.safetensors")
    classes = Model(model.encoder, {"class": SequenceClassification(14, 5)})
    save_model(tmp_path / "classes", classes, tokens, metadata={})
    found = ModelFolder.open(tmp_path / "classes").load_model(lambda encoder: {"class": SequenceClassification(14, 5)})
    for name, tensor in classes.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor)


def test_buffers_of_old_files_are_ignored(folder: Path, model: Model) -> None:
    """The mask of each layer as a buffer, and the copy of the word embeddings."""
    word = load_file(folder / "model.safetensors")["transformer.tokens_embed.weight"]
    rewrite(folder, **{f"transformer.h.{layer}.attn.bias": torch.ones(1, 1, 41, 41) for layer in range(3)})
    rewrite(folder, **{"lm_head.weight": word.clone(), "transformer.position_ids": torch.arange(41)})
    assert_same(folder, model)
    rewrite(folder, **{"lm_head.weight": word + 1})
    ModelFolder.open(folder).load_encoder()
    with pytest.raises(BertkitError, match=r"lm_head\.weight differs from tokens_embed\.weight"):
        ModelFolder.open(folder).load_model(read_next)


def test_absent_keys_of_a_config_have_the_published_values(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "openai-gpt"}')
    assert ModelFolder.open(folder).config == GptConfig(vocab_size=40_478)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "openai-gpt2"}, 'model_type is "openai-gpt2"; bertkit reads .*"openai-gpt"'),
        ({"afn": "silu"}, 'afn is "silu"; bertkit reads "gelu"'),
        ({"embd_pdrop": 0.1}, r"has resid_pdrop 0\.2 and embd_pdrop 0\.1; bertkit has one dropout for both"),
        ({"n_layer": "3"}, "Expected `int`, got `str` - at `n_layer`"),
        ({"n_layer": 4}, r"config\.json says 4 layers and model\.safetensors has 3"),
    ],
)
def test_a_config_that_does_not_match_the_weights_is_an_error(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    reconfigure(folder, **changes)
    with pytest.raises(BertkitError, match=message):
        ModelFolder.open(folder).load_encoder()


def test_missing_and_unknown_tensors_are_named(folder: Path) -> None:
    rewrite(folder, **{"transformer.h.0.mlp.c_fc.weight": torch.ones(56, 14), "transformer.h.1.ln_2.bias": None})
    rewrite(folder, **{"transformer.h.1.adapter.weight": torch.ones(3)})
    with pytest.raises(BertkitError) as caught:
        ModelFolder.open(folder).load_encoder()
    assert "lacks h.1.ln_2.bias" in str(caught.value)
    assert "has unknown h.1.adapter.weight" in str(caught.value)
    assert "has h.0.mlp.c_fc.weight as 56 x 14 instead of 14 x 56" in str(caught.value)


def test_the_tokens_of_fine_tuning_get_embeddings_which_are_the_same_at_every_load(
    folder: Path, tokens: BPE, tmp_path: Path
) -> None:
    name = "transformer.tokens_embed.weight"
    table = load_file(folder / "model.safetensors")[name]
    rewrite(folder, **{name: table[:-3].clone()})
    reconfigure(folder, vocab_size=len(table) - 3)
    loaded = ModelFolder.open(folder).load_model(read_next)
    assert isinstance(loaded.encoder, Gpt)
    assert torch.equal(loaded.encoder.embeddings.word.weight[:-3], table[:-3])
    save_model(tmp_path / "saved", loaded, tokens, metadata={})
    first, *others = (Pipeline(ModelFolder.open(each)).embed("an ox") for each in (folder, folder, tmp_path / "saved"))
    assert all(np.array_equal(first, other) for other in others)


def test_filling_masked_words_is_refused(folder: Path) -> None:
    with pytest.raises(BertkitError, match="this model has no masked-LM head") as caught:
        Pipeline(ModelFolder.open(folder)).fill("the <unk> stood")
    assert caught.value.exit_code == 2
