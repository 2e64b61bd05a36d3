"""The activation that a model was saved with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.inference.conversion import convert
from bertkit.inference.pipeline import load
from bertkit.server.activations import activate, find_activation
from bertkit.server.models import ServedModel


@pytest.mark.parametrize(
    ("name", "expected"), [("reviews", "softmax"), ("topics", "sigmoid"), ("ranker", "none"), ("words", "softmax")]
)
def test_the_activation_is_that_of_the_task(tiny_models: Path, name: str, expected: str) -> None:
    pipeline = load(tiny_models / name)
    task = None if name == "words" else pipeline.task
    assert find_activation(task, ModelFolder.open(tiny_models / name).metadata) == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, "sigmoid"),
        ({"problem_type": "regression"}, "none"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, "none"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, "sigmoid"),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, "none"),
    ],
)
def test_one_number_of_another_library_is_a_ranker_unless_its_config_says_otherwise(
    tiny_models: Path, tmp_path: Path, stated: dict[str, Any], expected: str
) -> None:
    shutil.copytree(tiny_models / "ranker", tmp_path / "ranker")
    (tmp_path / "ranker" / "bertkit.json").unlink()
    path = tmp_path / "ranker" / "config.json"
    content = json.loads(path.read_text())
    config = {name: content[name] for name in content.keys() - {"problem_type", "sentence_transformers"}}
    path.write_text(json.dumps(config | stated))
    metadata = ModelFolder.open(tmp_path / "ranker").metadata
    assert find_activation(load(tmp_path / "ranker").task, metadata) == expected


def test_scores_are_plain_floats() -> None:
    logits = np.array([1.0, -2.0, 0.5])
    assert sum(activate(logits, "softmax")) == pytest.approx(1)
    assert activate(logits, "none") == [1.0, -2.0, 0.5]
    assert activate(np.array([0.0]), "sigmoid") == [0.5]
    assert all(type(score) is float for score in activate(logits, "sigmoid"))


def test_an_imported_ranker_keeps_its_sigmoid(tiny_models: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_models / "ranker", tmp_path / "ranker")
    (tmp_path / "ranker" / "bertkit.json").unlink()
    path = tmp_path / "ranker" / "config.json"
    content = json.loads(path.read_text())
    config = {name: content[name] for name in content.keys() - {"problem_type", "sentence_transformers"}}
    path.write_text(json.dumps(config))
    convert(ModelFolder.open(tmp_path / "ranker"), tmp_path / "imported")
    before, after = (ServedModel("ranker", load(tmp_path / name)) for name in ("ranker", "imported"))
    assert (before.activation, after.activation) == ("sigmoid", "sigmoid")
