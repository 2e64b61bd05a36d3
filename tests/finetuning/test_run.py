"""What fine-tuning does for small data, seen in the weights that it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from bertkit import api
from bertkit.encoders.bert import tiny
from bertkit.errors import BertkitError
from bertkit.finetuning.train_seed import layer_lr_scales
from bertkit.model import Model
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.runs import read_run
from bertkit.training.optimizer import OptimizerConfig, build_optimizer, set_lr


def weights(folder: Path) -> dict[str, Tensor]:
    return {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}


def finetune(table: Path, model: Path, output: Path, lr: float, **options: object) -> dict[str, Tensor]:
    fixed = {"epochs": 1, "batch_size": 13, "progress": "quiet"}
    api.finetune(table, model=model, output=output, lr=lr, **fixed, **options)  # type: ignore[arg-type]
    return weights(output / "model")


def test_the_rate_falls_from_the_heads_to_the_embeddings() -> None:
    encoder = tiny()
    model = Model(encoder, {"class": SequenceClassification(encoder.hidden_size, 3)})
    optimizer = build_optimizer(model, OptimizerConfig(), layer_lr_scales(model, 0.5))
    set_lr(optimizer, 0.8)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    found = {name: rates[id(parameter)] for name, parameter in model.named_parameters()}
    wanted = {
        "objectives.class": 0.8,
        "encoder.pooler": 0.8,
        "encoder.layers.2": 0.4,
        "encoder.layers.1": 0.2,
        "encoder.layers.0": 0.1,
        "encoder.embeddings": 0.05,
    }
    for name, rate in found.items():
        (expected,) = [value for part, value in wanted.items() if name.startswith(f"{part}.")]
        assert rate == pytest.approx(expected, rel=1e-12), name


def test_so_many_dev_examples_are_scored(table: Path, model: Path, tmp_path: Path) -> None:
    fixed = {"epochs": 1, "batch_size": 13, "limit": 13, "progress": "quiet"}
    run = api.finetune(table, model=model, output=tmp_path / "run", set=["dev_limit=7"], **fixed).folder  # type: ignore[arg-type]
    assert read_run(run)["examples"] == {"train": 13, "dev": 7}
    assert "Only the first 7 dev examples were scored." in (run / "model" / "README.md").read_text()
    with pytest.raises(BertkitError, match="dev_limit is 0"):
        api.finetune(table, model=model, output=tmp_path / "none", set=["dev_limit=0"], **fixed)  # type: ignore[arg-type]


def test_the_last_layers_are_drawn_anew_and_the_others_kept(table: Path, model: Path, tmp_path: Path) -> None:
    before = weights(model)
    after = finetune(table, model, tmp_path / "run", 0.0, reinit_layers=1)
    for name, value in before.items():
        drawn = name.startswith(("encoder.layer.2.", "pooler.")) and name.endswith("dense.weight")
        drawn |= name.startswith("encoder.layer.2.attention.self.") and name.endswith("weight")
        assert torch.equal(value, after[name]) is not drawn, name


def test_lower_layers_learn_less(table: Path, model: Path, tmp_path: Path) -> None:
    before = weights(model)
    after = finetune(table, model, tmp_path / "run", 1e-2, layer_decay=1e-30)
    moved = {name for name, value in before.items() if not torch.allclose(value, after[name], atol=1e-9)}
    assert moved == {"pooler.dense.weight", "pooler.dense.bias"}


def test_gradient_checkpointing_changes_nothing(table: Path, model: Path, tmp_path: Path) -> None:
    kept = finetune(table, model, tmp_path / "a", 1e-3)
    computed_again = finetune(table, model, tmp_path / "b", 1e-3, set=["gradient_checkpointing=true"])
    assert all(torch.equal(weight, computed_again[name]) for name, weight in kept.items())


def test_restarts_draw_different_layers_and_the_same_seed_the_same(table: Path, model: Path, tmp_path: Path) -> None:
    name = "encoder.layer.1.output.dense.weight"
    drawn = [
        finetune(table, model, tmp_path / str(number), 0.0, reinit_layers=2, first_seed=seed)[name]
        for number, seed in enumerate((3, 3, 4))
    ]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reinit_layers": 4}, "reinit_layers is 4; .*tiny has 3"),
        ({"reinit_layers": -1}, "reinit_layers is -1; it must be 0 or more"),
        ({"layer_decay": 0.0}, "layer_decay is 0.0; it must be above 0 and at most 1"),
        ({"layer_decay": 1.5}, "layer_decay is 1.5; it must be above 0 and at most 1"),
    ],
)
def test_impossible_wishes_are_refused(
    options: dict[str, object], message: str, table: Path, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(BertkitError, match=message):
        finetune(table, model, tmp_path / "run", 1e-3, **options)


@pytest.mark.usefixtures("no_pictures")
def test_what_ended_before_its_first_step_does_not_hold_its_folder(table: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="no model at"):
        finetune(table, tmp_path / "nowhere", tmp_path / "run", 1e-3)
    finetune(table, model, tmp_path / "run", 1e-3)
    with pytest.raises(BertkitError, match="holds another run"):
        finetune(table, model, tmp_path / "run", 1e-4)
