"""Model = encoder + objectives: the one thing that is trained, saved and exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor, nn

from bertkit.batch import Batch, LossTerms, Outputs
from bertkit.contracts import Encoder, Objective


class Model(nn.Module):
    """One pass of the encoder, and every objective's answer to it.

    Loss terms are named by the label that they read, so no two objectives may read the same label. The encoder is
    ``frozen`` where one of them takes its layers as features: it has no gradients and no dropout.
    """

    def __init__(self, encoder: Encoder, objectives: Mapping[str, Objective]) -> None:
        super().__init__()
        labels = [objective.label for objective in objectives.values()]
        assert len(set(labels)) == len(labels), f"two objectives read the same label: {labels}"
        self.encoder = encoder
        self.objectives = nn.ModuleDict(dict(objectives))
        self.frozen = any(objective.reads_layers for objective in objectives.values())
        if self.frozen:
            encoder.output_hidden_states = True
            encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Dropout on or off; a frozen encoder never has any."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """The answers of every objective, by its name."""
        states = self.encoder(batch, self._needed_positions(batch.on_host))
        return {name: objective(states, batch) for name, objective in self._named_objectives()}

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many labels each loss term will count, from the labels alone."""
        counts: dict[str, int] = {}
        for _, objective in self._named_objectives():
            counts |= objective.counts(batch)
        return counts

    def count_macs(self, batch: Batch) -> int:
        """The multiplications of ``forward`` that the answers cannot do without, as far as somebody counts them."""
        positions = self._needed_positions(batch)
        objectives = [objective for _, objective in self._named_objectives()]
        inside = self.encoder.count_macs(
            batch,
            batch.attention_mask if positions is None else positions,
            pooled=any(each.reads_pooled for each in objectives),
        )
        return inside + sum(each.count_macs(batch) for each in objectives)

    def loss(self, outputs: Mapping[str, Outputs], batch: Batch) -> LossTerms:
        """The loss terms of every objective."""
        terms: LossTerms = {}
        for name, objective in self._named_objectives():
            for label, term in objective.loss(outputs[name], batch).items():
                terms[label] = replace(term, weight=objective.weight)
        return terms

    def metrics(self, outputs: Mapping[str, Outputs], batch: Batch) -> LossTerms:
        """The watched counts of every objective."""
        terms: LossTerms = {}
        for name, objective in self._named_objectives():
            terms |= objective.metrics(outputs[name], batch)
        return terms

    def _needed_positions(self, batch: Batch) -> Tensor | None:
        """The tokens whose states some objective reads; None for all."""
        positions = torch.zeros_like(batch.attention_mask)
        for _, objective in self._named_objectives():
            reads = objective.reads(batch)
            if reads is None:
                return None
            positions |= reads
        return positions

    def _named_objectives(self) -> list[tuple[str, Objective]]:
        pairs = []
        for name, objective in self.objectives.items():
            assert isinstance(objective, Objective)
            pairs.append((name, objective))
        return pairs
