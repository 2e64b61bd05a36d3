"""Next-sentence prediction (paper, section 3.1, task 2): does segment B follow segment A?

Letters: B examples, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Context, Encoder, PretrainingObjective
from bertkit.nn.init import BERT_SIGMA, initialize
from bertkit.objective_settings import ObjectiveSettings

IS_NEXT = 0
IS_RANDOM = 1
"""The labels of google-research/bert ``run_pretraining.py``: 1 means B comes from another document."""


class NextSentencePrediction(PretrainingObjective):
    """One linear layer on the pooled [CLS], without dropout. ``forward`` returns ``logits`` (B, 2)."""

    label = "nsp"
    context: ClassVar[Context] = "bidirectional"
    rows: ClassVar[Literal["pairs"]] = "pairs"
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier.weight": ("cls.seq_relationship.weight",),
        "classifier.bias": ("cls.seq_relationship.bias",),
    }

    def __init__(self, hidden_size: int, *, initializer_range: float = BERT_SIGMA) -> None:
        super().__init__()
        self.classifier = nn.Linear(hidden_size, 2)
        initialize(self, initializer_range)

    @classmethod
    def build(cls, encoder: Encoder, settings: ObjectiveSettings) -> Self:
        """A head with the initializer range of the encoder."""
        return cls(encoder.hidden_size, initializer_range=getattr(encoder.config, "initializer_range", BERT_SIGMA))

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """No position: only the pooled state is needed."""
        return torch.zeros_like(batch.attention_mask)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (B, 2): IS_NEXT, IS_RANDOM."""
        return {"logits": self.classifier(states.pooled)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed."""
        labels = batch.labels[self.label]
        total = F.cross_entropy(outputs["logits"].float(), labels, ignore_index=IGNORE, reduction="sum")
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``nsp_accuracy``: rows that are classified correctly. ``nsp_random``: rows whose pair is random."""
        labels, count = batch.labels[self.label], self.counts(batch)[self.label]
        right = (outputs["logits"].argmax(dim=-1) == labels).sum()
        return {
            f"{self.label}_accuracy": LossTerm(right, count),
            f"{self.label}_random": LossTerm((labels == IS_RANDOM).sum(), count),
        }

    def count_macs(self, batch: Batch) -> int:
        """The multiply-accumulates of the linear layer, for every row."""
        return len(batch) * self.classifier.weight.numel()


def tiny(hidden_size: int, batch: Batch) -> tuple[NextSentencePrediction, Batch]:
    """A small instance and ``batch`` with labels for it, one missing, for tests."""
    labels = torch.arange(len(batch)) % 2
    labels[1] = IGNORE
    return NextSentencePrediction(hidden_size), batch.with_labels(**{NextSentencePrediction.label: labels})
