"""An ensemble of models for one task: the mean of their outputs (paper, sections 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from bertkit.batch import Batch, Outputs
from bertkit.model import Model


class Ensemble(nn.Module):
    """Runs every member on a batch; the heads of all members have the same names and shapes."""

    def __init__(self, members: Sequence[Model]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """The outputs of every objective, each the mean over the members, in float32."""
        outputs: list[dict[str, Outputs]] = [member(batch) for member in self.members]
        return {objective: _mean([each[objective] for each in outputs]) for objective in outputs[0]}


def _mean(outputs: Sequence[Outputs]) -> Outputs:
    return {name: torch.stack([each[name].float() for each in outputs]).mean(dim=0) for name in outputs[0]}
