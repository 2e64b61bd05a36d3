from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import bertkit
from bertkit.encoders.bert import tiny
from bertkit.errors import BertkitError
from bertkit.finetuning import train_seed
from bertkit.finetuning.results import SeedResult, read_seeds
from bertkit.finetuning.train_seed import layer_lr_scales
from bertkit.machine.interrupts import Interrupted
from bertkit.model import Model
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.runs import RunFolder
from bertkit.training.fit import Step, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer, set_lr

pytestmark = pytest.mark.usefixtures("no_pictures")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 13, "progress": "quiet"}


def weights(folder: Path) -> dict[str, Tensor]:
    return {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}


def train(table: Path, model: Path, output: Path, lr: float, **options: Any) -> dict[str, Tensor]:
    """The weights after a fine-tuning with these options."""
    bertkit.finetune(table, model=model, output=output, lr=lr, **{**QUICK, **options})
    return weights(output / "model")


def test_layer_decay_lowers_the_rate_from_the_heads_to_the_embeddings() -> None:
    encoder = tiny()
    model = Model(encoder, {"class": SequenceClassification(encoder.hidden_size, 3)})
    optimizer = build_optimizer(model, OptimizerConfig(), layer_lr_scales(model, 0.5))
    set_lr(optimizer, OptimizerConfig(lr=0.8))
    rates = {id(p): group.lr for group in optimizer.groups for p in group.parameters}
    found = {name: rates[id(parameter)] for name, parameter in model.named_parameters()}
    expected_rates = {
        "objectives.class": 0.8,
        "encoder.pooler": 0.8,
        "encoder.layers.2": 0.4,
        "encoder.layers.1": 0.2,
        "encoder.layers.0": 0.1,
        "encoder.embeddings": 0.05,
    }
    for name, rate in found.items():
        (expected,) = [value for part, value in expected_rates.items() if name.startswith(f"{part}.")]
        assert rate == pytest.approx(expected, rel=1e-12), name


def test_only_heads_and_pooler_learn_when_layer_decay_is_near_zero(table: Path, model: Path, tmp_path: Path) -> None:
    before = weights(model)
    after = train(table, model, tmp_path / "run", 1e-2, layer_decay=1e-30, set=["task.pooling=cls"])
    moved = {name for name, value in before.items() if not torch.allclose(value, after[name], atol=1e-9)}
    assert moved == {"pooler.dense.weight", "pooler.dense.bias"}


def test_reinitialised_layers_replace_the_pretrained_ones(table: Path, model: Path, tmp_path: Path) -> None:
    before = weights(model)
    after = train(table, model, tmp_path / "run", 0.0, reinit_layers=1)
    for name, value in before.items():
        reinitialised = name.startswith(("encoder.layer.2.", "pooler.")) and name.endswith("dense.weight")
        reinitialised |= name.startswith("encoder.layer.2.attention.self.") and name.endswith("weight")
        assert torch.equal(value, after[name]) is not reinitialised, name


def test_the_seed_determines_the_reinitialised_layers(table: Path, model: Path, tmp_path: Path) -> None:
    name = "encoder.layer.1.output.dense.weight"
    first, again, other = (
        train(table, model, tmp_path / str(number), 0.0, reinit_layers=2, first_seed=seed)[name]
        for number, seed in enumerate((3, 3, 4))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_gradient_checkpointing_does_not_change_the_weights(table: Path, model: Path, tmp_path: Path) -> None:
    stored = train(table, model, tmp_path / "a", 1e-3)
    recomputed = train(table, model, tmp_path / "b", 1e-3, set=["gradient_checkpointing=true"])
    assert all(torch.equal(weight, recomputed[name]) for name, weight in stored.items())


def test_the_weights_and_scores_of_the_best_epoch_are_kept(table: Path, model: Path, tmp_path: Path) -> None:
    result = bertkit.finetune(table, model=model, output=tmp_path / "run", lr=1e-2, **{**QUICK, "epochs": 5}).best
    accuracies = [scores["accuracy"] for scores in result.epochs]
    assert len(accuracies) == 5
    last_best = max(epoch for epoch, accuracy in enumerate(accuracies, start=1) if accuracy == max(accuracies))
    assert result.best_epoch == last_best
    assert result.scores["accuracy"] == max(accuracies)
    assert bertkit.evaluate(tmp_path / "run", progress="quiet")["accuracy"] == max(accuracies)


def test_the_model_of_the_best_seed_is_kept(table: Path, model: Path, tmp_path: Path) -> None:
    result = bertkit.finetune(table, model=model, output=tmp_path / "run", lr=1e-2, seeds=3, **QUICK)
    alone = train(table, model, tmp_path / "alone", 1e-2, first_seed=result.best.seed)
    assert all(torch.equal(weight, alone[name]) for name, weight in weights(tmp_path / "run" / "model").items())
    speeds: list[SeedResult] = [each for each in result.seeds if each.examples_per_second > 0 and each.seconds > 0]
    assert len(speeds) == 3


def test_a_language_model_needs_a_left_to_right_encoder(table: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="lm_loss_weight is for a model that is trained and reads from left to"):
        train(table, model, tmp_path / "run", 1e-3, set=["lm_loss_weight=0.5"])


def test_a_signal_in_the_last_step_of_a_seed_keeps_the_seed(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit_with_a_signal(state: Any, source: Any, plan: Any) -> Iterator[Step]:
        for step in fit(state, source, plan):
            if step.step == plan.total_steps:
                os.kill(os.getpid(), signal.SIGTERM)
            yield step

    monkeypatch.setattr(train_seed, "fit", fit_with_a_signal)
    with pytest.raises(Interrupted, match="stopped before seed 1"):
        bertkit.finetune(table, model=model, output=tmp_path / "run", seeds=2, **QUICK)
    assert [result.seed for result in read_seeds(RunFolder(tmp_path / "run"))] == [0]
