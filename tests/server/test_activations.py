"""The activation that a model was saved with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.inference.pipeline import load
from bertkit.server.activations import activate, find_activation


@pytest.mark.parametrize(
    ("name", "expected"), [("reviews", "softmax"), ("topics", "sigmoid"), ("ranker", "none"), ("words", "softmax")]
)
def test_the_activation_is_that_of_the_task(tiny_models: Path, name: str, expected: str) -> None:
    pipeline = load(tiny_models / name)
    task = None if name == "words" else pipeline.task
    assert find_activation(task, pipeline.folder) == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, "sigmoid"),
        ({"problem_type": "regression"}, "none"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, "none"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, "sigmoid"),
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
    pipeline = load(tmp_path / "ranker")
    assert find_activation(pipeline.task, pipeline.folder) == expected


def test_scores_are_plain_floats() -> None:
    logits = np.array([1.0, -2.0, 0.5])
    assert sum(activate(logits, "softmax")) == pytest.approx(1)
    assert activate(logits, "none") == [1.0, -2.0, 0.5]
    assert activate(np.array([0.0]), "sigmoid") == [0.5]
    assert all(type(score) is float for score in activate(logits, "sigmoid"))
