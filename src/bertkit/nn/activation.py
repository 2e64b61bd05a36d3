"""The non-linearities, by the names that a config spells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import nn

ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    # The paper's, and google-research/bert's until February 2019 (commit bee6030): x * Phi(x) by erf.
    "gelu": nn.GELU,
    # google-research/bert since then: the tanh approximation. Checkpoints load with either.
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
}
