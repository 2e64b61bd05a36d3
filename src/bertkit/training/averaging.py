"""The average of the weights over training, which is what a run with averaging evaluates and saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from bertkit.ranges import ShareAboveZero, ShareBelowOne, check_ranges

_ROUNDING = 1e-9
"""What a share of the steps may be off by: 1 - 0.07 is less than 0.93."""


@dataclass(frozen=True, kw_only=True)
class AveragingConfig:
    """Which average of the weights a run evaluates and saves.

    * ``none``: the last weights;
    * ``ema``: an exponential moving average. ``decay`` is how much of it each step keeps; the first steps keep less,
      ``(1 + n) / (10 + n)`` after n steps, so that the random weights are forgotten (as in TensorFlow);
    * ``tail``: the mean over the last ``share`` of the steps, or of the time (Izmailov et al., arXiv 1803.05407).
    """

    kind: Literal["none", "ema", "tail"] = "none"
    decay: ShareBelowOne = 0.999
    share: ShareAboveZero = 0.2

    def __post_init__(self) -> None:
        check_ranges(self)

    def needs(self) -> dict[str, str]:
        """The settings that these ones switch off, and what would switch them on."""
        switched = {"decay": "ema", "share": "tail"}
        return {name: f"averaging.kind={kind}" for name, kind in switched.items() if kind != self.kind}


class WeightAverage:
    """The running average of the weights of ``model``; until the first update it has none."""

    def __init__(self, model: nn.Module, config: AveragingConfig) -> None:
        self.config = config
        self._model = model
        self._count = torch.zeros((), dtype=torch.int64)
        self._average = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    def tensors(self) -> dict[str, Tensor]:
        """The average by parameter, and ``count``, the number of steps in it; no copies."""
        return {**self._average, "count": self._count}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Load what ``tensors`` returned, in place, bit for bit."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])

    @torch.no_grad()
    def update(self, progress: float) -> None:
        """Add the weights after a step that ends when the share ``progress`` of the run is done."""
        if self.config.kind == "tail" and progress <= 1 - self.config.share + _ROUNDING:
            return
        count = int(self._count)
        new_share = 1 / (count + 1)
        if self.config.kind == "ema" and count:
            new_share = 1 - min(self.config.decay, (1 + count) / (10 + count))
        weights = [weight.detach() for weight in self._model.parameters()]
        torch._foreach_lerp_(list(self._average.values()), weights, new_share)
        self._count += 1

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """A context in which the model has the averaged weights; afterwards it has its own again, bit for bit."""
        if not int(self._count):
            yield
            return
        own = {name: weight.detach().clone() for name, weight in self._model.named_parameters()}
        self._assign(self._average)
        try:
            yield
        finally:
            self._assign(own)

    @torch.no_grad()
    def _assign(self, weights: dict[str, Tensor]) -> None:
        for name, weight in self._model.named_parameters():
            weight.copy_(weights[name])
