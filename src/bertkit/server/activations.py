"""From the outputs of a head to scores, by the activation that the model was saved with or that a request names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from bertkit.checkpoint.model_folder import CONFIG, METADATA
from bertkit.storage.atomic import read_json
from bertkit.task_types import FileTask, MultiLabelTask, RegressionTask

Activation = Literal["softmax", "sigmoid", "none"]
"""Hugging Face's names; ``none`` is the identity."""

_FUNCTIONS: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "softmax": softmax,
    "sigmoid": expit,
    "none": lambda logits: logits,
}

_SENTENCE_TRANSFORMERS, _IDENTITY = "sentence_transformers", ".Identity"


def activate(logits: NDArray[np.float64], activation: Activation) -> list[float]:
    """The scores of all classes, as plain floats."""
    return [float(score) for score in _FUNCTIONS[activation](np.asarray(logits, dtype=np.float64))]


def find_activation(task: FileTask | None, folder: Path) -> Activation:
    """What a model was trained with: softmax for one of several classes, sigmoid for several labels.

    A number of a model of bertkit is itself. In a folder of another library one number is a logit of a re-ranker, with
    sigmoid, unless ``config.json`` says that it is for regression or that the activation is the identity, as
    sentence-transformers does.
    """
    if isinstance(task, MultiLabelTask):
        return "sigmoid"
    if not isinstance(task, RegressionTask):
        return "softmax"
    if (folder / METADATA).is_file():
        return "none"
    config = read_json(folder / CONFIG)
    stated = config.get(_SENTENCE_TRANSFORMERS) or {}
    named = str(stated.get("activation_fn", "")) if isinstance(stated, dict) else ""
    return "none" if named.endswith(_IDENTITY) or config.get("problem_type") == "regression" else "sigmoid"
