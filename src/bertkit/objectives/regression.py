"""A number for each feature, from the pooled state.

Letters: E features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import nn

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.nn.init import initialize
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives._pooled import PooledObjective


class Regression(PooledObjective):
    """Dropout and one linear layer on the pooled [CLS], trained by squared error.

    ``forward`` returns ``value`` (E,). Features with the label IGNORE are not counted. google-research/bert has no
    regression; this is how STS-B is commonly done with BERT.
    """

    label = "number"
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "regressor.weight": ("classifier.weight",),
        "regressor.bias": ("classifier.bias",),
    }

    def __init__(self, hidden_size: int, *, pooling: Pooling = "cls", pair_head: bool = False) -> None:
        super().__init__(hidden_size, pooling=pooling, pair_head=pair_head)
        self.regressor = nn.Linear(hidden_size, 1)
        initialize(self)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``value`` (E,), in float32 whatever the precision: in bfloat16 numbers near 4 would be multiples of 1/64."""
        vectors = self.pool_features(states, batch)
        with torch.autocast(vectors.device.type, enabled=False):
            return {"value": self.regressor(vectors.float()).squeeze(-1)}

    @torch.no_grad()
    def rescale(self, factor: float, offset: float) -> None:
        """Change the weights so that ``value`` becomes value * factor + offset."""
        self.regressor.weight.mul_(factor)
        self.regressor.bias.mul_(factor).add_(offset)

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Squared error, summed."""
        labels = batch.labels[self.label]
        errors = (outputs["value"].float() - labels.float()).masked_fill(labels == IGNORE, 0)
        total = errors.square().sum()
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}


def tiny(hidden_size: int, batch: Batch) -> tuple[Regression, Batch]:
    """A small instance and ``batch`` with labels for it, one missing, for tests."""
    labels = torch.linspace(-1.0, 5.0, len(batch))
    labels[1] = IGNORE
    return Regression(hidden_size), batch.with_labels(**{Regression.label: labels})
