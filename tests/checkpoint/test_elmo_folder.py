"""A folder of ELMo has our own names: written, loaded, and every fault named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.transformers_folders import reconfigure, rewrite, save_without_metadata

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.elmo import Elmo, ElmoConfig, size
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.bilm import BidirectionalLanguageModel
from bertkit.text import words

TEXTS = ["a fox and an ox", "the ox's den, and the fox"] * 2


def read_both_ways(encoder: Encoder) -> Mapping[str, Objective]:
    return {"bilm": BidirectionalLanguageModel(encoder.hidden_size, 37, num_samples=None)}


@pytest.fixture
def model() -> Model:
    shape = size("3/6/11", word_length=7, filters=((1, 4), (3, 5)), cell_clip=None, projection_clip=1.5, dropout=0.3)
    encoder = Elmo(shape)
    return Model(encoder, read_both_ways(encoder))


@pytest.fixture
def folder(tmp_path: Path, model: Model) -> Path:
    return save_without_metadata(tmp_path, model, words.train(TEXTS, vocab_size=37, word_length=7))


def test_a_saved_model_is_loaded_bit_for_bit(folder: Path, model: Model, tmp_path: Path) -> None:
    assert ModelFolder.open(folder).config == model.encoder.config
    assert ModelFolder.open(folder).metadata["architectures"] == []
    loaded = ModelFolder.open(folder).load_model(read_both_ways)
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    save_model(tmp_path / "again", loaded, ModelFolder.open(folder).tokenizer, metadata={})
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_the_files_have_our_own_names(folder: Path, model: Model) -> None:
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["filters"], config["cell_clip"]) == ("elmo", [[1, 4], [3, 5]], None)
    stored = load_file(folder / "model.safetensors")
    ours = model.encoder.state_dict()
    assert torch.equal(stored["encoder.directions.1.2.gates.weight"], ours["directions.1.2.gates.weight"])
    assert {name for name in stored if name.startswith("encoder.")} == {f"encoder.{name}" for name in ours}


def test_an_encoder_without_heads_is_saved_and_loaded(folder: Path, model: Model, tmp_path: Path) -> None:
    encoder = ModelFolder.open(folder).load_encoder()
    save_model(
        tmp_path / "bare", Model(encoder, {}), ModelFolder.open(folder).tokenizer, metadata={"kind": "assembled"}
    )
    assert set(load_file(tmp_path / "bare" / "model.safetensors")) == set(encoder.state_dict())
    again = ModelFolder.open(tmp_path / "bare").load_encoder().state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in model.encoder.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_size": "11"}, r"Expected `int`, got `str` - at `\$\.cell_size`"),
        ({"filters": [[9, 4]]}, r"filters has \(9, 4\); a width is at most word_length, 7\.$"),
        ({"num_layers": 2}, r"has unknown directions\.0\.2\.gates\."),
        ({"num_layers": 4}, r"lacks directions\.0\.3\.gates\."),
        ({"projection_size": 5}, r"has projection\.weight as 6 x 9 instead of 5 x 9"),
    ],
)
def test_a_config_that_does_not_match_the_weights_is_an_error(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    reconfigure(folder, **changes)
    with pytest.raises(BertkitError, match=message):
        ModelFolder.open(folder).load_encoder()


def test_missing_and_unknown_tensors_are_named(folder: Path) -> None:
    rewrite(folder, **{"encoder.words.embedding.weight": None, "encoder.words.extra": torch.ones(3)})
    with pytest.raises(BertkitError, match=r"lacks words\.embedding\.weight; has unknown words\.extra"):
        ModelFolder.open(folder).load_encoder()


def test_published_sizes_and_explicit_ones() -> None:
    assert size("original", vocab_size=99) == ElmoConfig()
    assert size("small").cell_size == 1024
    assert sum(count for _, count in size("2/64/256").filters) == 256
    assert size("tiny") == size("2/64/256")
    with pytest.raises(BertkitError, match=r'no size named "smal"\. Did you mean "small"'):
        size("smal")
