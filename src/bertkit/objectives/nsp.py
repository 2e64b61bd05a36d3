"""Next-sentence prediction (paper, section 3.1, task 2): does segment B follow segment A?

Letters: B examples, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Objective
from bertkit.nn.init import BERT_SIGMA, initialize

IS_NEXT = 0
IS_RANDOM = 1
"""The labels of google-research/bert ``run_pretraining.py``: 1 means B comes from another document."""


class NextSentencePrediction(Objective):
    """One linear layer on the pooled [CLS], without dropout. ``forward`` gives ``logits`` (B, 2)."""

    label = "nsp"

    def __init__(self, hidden_size: int, *, initializer_range: float = BERT_SIGMA) -> None:
        super().__init__()
        self.classifier = nn.Linear(hidden_size, 2)
        initialize(self, initializer_range)

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """Nothing but the pooled state."""
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
        """``nsp_accuracy``: rows answered rightly."""
        right = (outputs["logits"].argmax(dim=-1) == batch.labels[self.label]).sum()
        return {f"{self.label}_accuracy": LossTerm(right, self.counts(batch)[self.label])}

    def count_macs(self, batch: Batch) -> int:
        """Two numbers for a row."""
        return len(batch) * self.classifier.weight.numel()


HF_NAMES: Mapping[str, tuple[str, ...]] = {
    "classifier.weight": ("cls.seq_relationship.weight",),
    "classifier.bias": ("cls.seq_relationship.bias",),
}
"""Our name -> Hugging Face's, as in ``encoders/bert.py``."""


def specimen(hidden_size: int, batch: Batch) -> tuple[NextSentencePrediction, Batch]:
    """A small instance and ``batch`` with labels for it, one missing: what the shelf's tests run on."""
    labels = torch.arange(len(batch)) % 2
    labels[1] = IGNORE
    return NextSentencePrediction(hidden_size), batch.with_labels(**{NextSentencePrediction.label: labels})
