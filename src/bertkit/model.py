"""Model = encoder + objectives: what is trained, saved, loaded and exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self, cast

import torch
from torch import Tensor, nn

from bertkit.batch import Batch, LossTerm, LossTerms, Outputs
from bertkit.contracts import Encoder, Objective
from bertkit.errors import usage_error


class Model(nn.Module):
    """An encoder, and named objectives that share one pass of it.

    Loss terms are named after the label that they use, so no two objectives may use the same label. If an objective
    freezes the encoder, the model is ``frozen``: the encoder has no gradients and no dropout.
    """

    def __init__(self, encoder: Encoder, objectives: Mapping[str, Objective]) -> None:
        super().__init__()
        labels = [objective.label for objective in objectives.values()]
        assert len(set(labels)) == len(labels), f"two objectives use the same label: {labels}"
        self.encoder = encoder
        self.objectives = nn.ModuleDict(dict(objectives))
        self.frozen = any(objective.freezes_encoder for objective in objectives.values())
        self._reads_layers = any(objective.reads_layers for objective in objectives.values())
        if self.frozen:
            encoder.requires_grad_(False)

    @property
    def heads(self) -> dict[str, Objective]:
        """The objectives by name, with their type: that of the values of ``objectives``, a ModuleDict, is unknown."""
        return cast("dict[str, Objective]", dict(self.objectives.items()))

    def train(self, mode: bool = True) -> Self:
        """Turn dropout on or off; a frozen encoder never has any."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """The outputs of every objective, by its name. States are computed only where an objective reads them."""
        states = self.encoder(batch, self._needed_positions(batch.on_host), output_hidden_states=self._reads_layers)
        return {name: objective(states, batch) for name, objective in self.heads.items()}

    def counts(self, batch: Batch) -> dict[str, int]:
        """The number of labels of each loss term, by its name, from the labels alone."""
        counts: dict[str, int] = {}
        for objective in self.heads.values():
            counts |= objective.counts(batch)
        return counts

    def count_macs(self, batch: Batch) -> tuple[int, int] | None:
        """Multiply-accumulate operations of ``forward`` that the outputs need, of the encoder and of the heads.

        None if the encoder does not count its own.
        """
        positions = self._needed_positions(batch)
        encoder_macs = self.encoder.count_macs(
            batch,
            batch.attention_mask if positions is None else positions,
            pooled=any(each.reads_pooled for each in self.heads.values()),
        )
        if encoder_macs is None:
            return None
        return encoder_macs, sum(each.count_macs(batch) for each in self.heads.values())

    def loss(self, outputs: Mapping[str, Outputs], batch: Batch) -> LossTerms:
        """The loss terms of every objective, by the name of the label, weighted as the objective says."""
        terms: LossTerms = {}
        for name, objective in self.heads.items():
            for label, term in objective.loss(outputs[name], batch).items():
                if not isinstance(term, LossTerm):
                    kind = f"{type(objective).__name__}.loss has a {type(term).__name__} for {label}"
                    raise usage_error(
                        f"{kind}; it must be LossTerm(sum, count), so that means are taken once per step."
                    )
                terms[label] = replace(term, weight=term.weight * objective.weight)
        return terms

    def metrics(self, outputs: Mapping[str, Outputs], batch: Batch) -> LossTerms:
        """The metrics of every objective, such as correct predictions; they are reported and not trained on."""
        terms: LossTerms = {}
        for name, objective in self.heads.items():
            terms |= objective.metrics(outputs[name], batch)
        return terms

    def _needed_positions(self, batch: Batch) -> Tensor | None:
        """Where at least one objective reads the hidden states; None for everywhere."""
        positions = torch.zeros_like(batch.attention_mask)
        for objective in self.heads.values():
            own = objective.reads(batch)
            if own is None:
                return None
            positions |= own
        return positions
