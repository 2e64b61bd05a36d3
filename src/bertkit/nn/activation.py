"""Activation functions by the names used in a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import nn

ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    # x * Phi(x) with erf, as in the paper and in google-research/bert until February 2019 (commit bee6030).
    "gelu": nn.GELU,
    # The tanh approximation, in google-research/bert since then. Checkpoints load with either.
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
}
