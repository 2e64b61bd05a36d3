"""A new BiLSTM on top of a pre-trained BERT: "+ BiLSTM" of the paper's Table 5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders import gpt
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.pretraining.record import PretrainRun
from bertkit.text import bpe

pytestmark = pytest.mark.usefixtures("no_pictures", "without_shape_checks")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 13, "limit": 37, "progress": "quiet"}
WITH_LSTM = ["lstm_layers=2"]


@pytest.fixture(scope="module")
def left_to_right(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "ltr"
    encoder = Bert(replace(ModelFolder.open(model).config, causal=True))
    save_model(folder, Model(encoder, {}), ModelFolder.open(model).tokenizer, metadata={})
    return folder


def weights(folder: Path) -> dict[str, Tensor]:
    return ModelFolder.open(folder).load_encoder().state_dict()


def test_the_lstm_is_initialised_by_the_seed_and_other_weights_are_kept(
    left_to_right: Path, table: Path, tmp_path: Path
) -> None:
    initialised = []
    for number, seed in enumerate((3, 3, 4)):
        run = tmp_path / str(number)
        bertkit.finetune(table, model=left_to_right, output=run, lr=0.0, first_seed=seed, set=WITH_LSTM, **QUICK)
        found = weights(run)
        for name, weight in weights(left_to_right).items():
            assert torch.equal(found[name], weight), name
        initialised.append(found["lstm.layers.1.weight_hh_l0_reverse"])
        assert initialised[-1].shape == (4 * 6, 6)
        assert 0 < initialised[-1].abs().max() <= 6**-0.5
    assert torch.equal(initialised[0], initialised[1])
    assert not torch.equal(initialised[0], initialised[2])


def test_the_lstm_is_saved_and_loaded_with_the_model(left_to_right: Path, table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = bertkit.finetune(table, model=left_to_right, output=run, lr=1e-2, seeds=2, set=WITH_LSTM, **QUICK)
    stored = load_file(run / "model" / "model.safetensors")
    assert stored["bert.lstm.layers.0.weight_ih_l0"].shape == (4 * 6, 12)
    assert (ModelFolder.open(run).config.lstm_layers, ModelFolder.open(run).config.causal) == (2, True)
    found = {name: score.value for name, score in bertkit.evaluate(run).scores.items()}
    assert found == result.best.scores
    again = bertkit.finetune(table, model=run, output=tmp_path / "again", lr=0.0, set=WITH_LSTM, **QUICK)
    assert again.best.scores == result.best.scores
    assert all(torch.equal(weight, weights(run)[name]) for name, weight in weights(tmp_path / "again").items())


def test_tagging_with_an_lstm(model: Path, tmp_path: Path) -> None:
    lines = ["river B-x", "stone O", "early O", "", "garden O", "music B-x", ""] * 7
    words, run = tmp_path / "words.conll", tmp_path / "run"
    words.write_text("\n".join(lines), encoding="utf-8")
    bertkit.finetune(words, model=model, output=run, dev=words, lr=1e-2, set=WITH_LSTM, **QUICK)
    assert "lstm.layers.1.bias_hh_l0" in weights(run)
    assert isinstance(bertkit.load(run).tag("river stone early"), list)


def test_the_lstm_has_the_learning_rate_of_the_heads(left_to_right: Path, table: Path, tmp_path: Path) -> None:
    """It is above the last layer: with a layer_decay near zero it still learns."""
    run, still = tmp_path / "run", tmp_path / "still"
    options: dict[str, Any] = {"set": WITH_LSTM, "layer_decay": 1e-30, **QUICK}
    bertkit.finetune(table, model=left_to_right, output=run, lr=1e-2, **options)
    bertkit.finetune(table, model=left_to_right, output=still, lr=0.0, **options)
    before, after = weights(still), weights(run)
    moved = {name for name, weight in before.items() if not torch.allclose(weight, after[name], atol=1e-9)}
    assert {name.split(".")[0] for name in moved} == {"lstm", "pooler"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["lstm_layers=-1"], "lstm_layers is -1; it must be from 0 to"),
        (
            ["lstm_layers=1", "lm_loss_weight=0.5"],
            "lm_loss_weight is for a model that .* reads from left to right",
        ),
    ],
)
def test_invalid_settings_are_refused(
    settings: list[str], message: str, left_to_right: Path, table: Path, tmp_path: Path
) -> None:
    with pytest.raises(BertkitError, match=message):
        bertkit.finetune(table, model=left_to_right, output=tmp_path / "run", set=settings, **QUICK)


def test_a_different_number_of_lstm_layers_is_refused(left_to_right: Path, table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    bertkit.finetune(table, model=left_to_right, output=run, set=["lstm_layers=1"], **QUICK)
    with pytest.raises(BertkitError, match=r"lstm_layers is 2; .*run has a BiLSTM of 1 on top already"):
        bertkit.finetune(table, model=run, output=tmp_path / "more", set=WITH_LSTM, **QUICK)


def test_other_encoders_than_bert_are_refused(table: Path, tmp_path: Path) -> None:
    tokenizer = bpe.train(["river stone early garden"] * 3, vocab_size=67)
    encoder = gpt.Gpt(gpt.size("1/12/2", vocab_size=tokenizer.vocab_size))
    save_model(tmp_path / "gpt", Model(encoder, {}), tokenizer, metadata={})
    with pytest.raises(BertkitError, match=r"lstm_layers is for BERT; .*gpt is another network"):
        bertkit.finetune(table, model=tmp_path / "gpt", output=tmp_path / "run", set=WITH_LSTM, **QUICK)


def test_pretraining_with_an_lstm_is_refused(model: Path) -> None:
    with pytest.raises(BertkitError, match=r"encoder\.lstm_layers is for fine-tuning"):
        PretrainRun(
            data=Path("data"), output=Path("run"), encoder=replace(ModelFolder.open(model).config, lstm_layers=1)
        )
