"""From the outputs of a head to scores, by the activation that the model was saved with or that a request names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.task_types import FileTask, TextTask
from bertkit.task_types.probabilities import Activation, sigmoid, softmax

_FUNCTIONS: Mapping[str, Callable[[NDArray[np.floating]], NDArray[np.floating]]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "none": lambda logits: logits,
}


def activate(logits: NDArray[np.float64], activation: Activation) -> list[float]:
    """The scores of all classes, as plain floats."""
    return [float(score) for score in _FUNCTIONS[activation](np.asarray(logits, dtype=np.float64))]


def find_activation(task: FileTask | None, metadata: Mapping[str, Any]) -> Activation:
    """What a model was trained with: softmax for one of several classes, sigmoid for several labels.

    A number of a model of bertkit is itself. That of a model of another library, imported or not, may be the logit of a
    re-ranker: ``metadata`` of its folder say whether a sigmoid is applied to it.
    """
    activation = task.activation if isinstance(task, TextTask) else "softmax"
    is_logit = activation == "none" and "task" not in metadata and metadata.get("sigmoid")
    return "sigmoid" if is_logit else activation
