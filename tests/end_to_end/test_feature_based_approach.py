"""The feature-based approach (paper, section 5.3): heads are trained on the layers of a frozen encoder."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

import bertkit
from bertkit.errors import BertkitError
from bertkit.finetuning.activations import ActivationCache
from bertkit.finetuning.results import FinetuneResult

OPTIONS: dict[str, Any] = {"epochs": 2, "batch_size": 7, "lr": 1e-2, "progress": "quiet"}


@pytest.fixture
def columns(tmp_path: Path) -> list[Path]:
    """Train and dev: 13 and 7 different sentences in which every "river" is a place."""
    pairs = list(permutations(("stone", "early", "garden", "music", "letter"), 2))
    files = []
    for name, chosen in (("train", pairs[:13]), ("dev", pairs[13:])):
        files.append(tmp_path / f"{name}.conll")
        files[-1].write_text("\n".join(f"{a} O\nriver B-LOC\n{b} O\n" for a, b in chosen), encoding="utf-8")
    return files


def finetune(columns: list[Path], model: Path, output: Path, **options: Any) -> FinetuneResult:
    train, dev = columns
    return bertkit.finetune(train, dev=dev, model=model, output=output, **OPTIONS, **options)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The keys of the rows that the encoder computed."""
    keys: list[bytes] = []
    keep = ActivationCache.write

    def count(self: ActivationCache, key: bytes, states: NDArray[np.float16]) -> None:
        keys.append(key)
        keep(self, key, states)

    monkeypatch.setattr(ActivationCache, "write", count)
    return keys


def test_the_frozen_encoder_runs_once_per_row_and_keeps_its_weights(
    columns: list[Path], model: Path, tmp_path: Path, kept: list[bytes]
) -> None:
    result = finetune(columns, model, tmp_path / "run", seeds=2, set=["task.features=sum-all"])
    assert len(kept) == len(set(kept)) == 13 + 7
    before, after = load_file(model / "model.safetensors"), load_file(tmp_path / "run" / "model" / "model.safetensors")
    for name, value in before.items():
        if "pooler" not in name and f"bert.{name}" in after:
            assert torch.equal(value, after[f"bert.{name}"]), name
    assert sum(name.startswith("bert.encoder.") for name in after) == sum(n.startswith("encoder.") for n in before)
    evaluation = bertkit.evaluate(tmp_path / "run", data=columns[1])
    assert evaluation.scores["f1"].value == pytest.approx(result.best.scores["f1"], abs=1e-6)
    assert [each.text for each in bertkit.load(tmp_path / "run").tag("the river ran")] in ([], ["river"])


def test_a_sweep_over_features_runs_the_encoder_once_per_row(
    columns: list[Path], model: Path, tmp_path: Path, kept: list[bytes]
) -> None:
    train, dev = columns
    grid = ["task.features=embeddings,last,concat-last-four"]
    result = bertkit.tune(train, dev=dev, model=model, output=tmp_path / "sweep", grid=grid, **OPTIONS)
    assert len(result.points) == 3
    assert len(kept) == 13 + 7


def test_a_feature_based_model_can_be_finetuned_further(columns: list[Path], model: Path, tmp_path: Path) -> None:
    finetune(columns, model, tmp_path / "a", set=["task.features=last"])
    finetune(columns, tmp_path / "a", tmp_path / "b")
    assert bertkit.load(tmp_path / "b").task.record()["features"] is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"set": ["task.features=lst"]}, 'no features named "lst". Did you mean "last"?'),
        ({"set": ["task.features=last"], "layer_decay": 0.9}, "task.features uses a frozen encoder"),
        ({"set": ["task.features=last"], "from_scratch": True}, "task.features uses a frozen encoder"),
    ],
)
def test_invalid_settings_are_refused(
    columns: list[Path], model: Path, tmp_path: Path, setting: dict[str, object], message: str
) -> None:
    with pytest.raises(BertkitError, match=re.escape(message)):
        finetune(columns, model, tmp_path / "run", **setting)
