"""Any number of labels per feature: a binary decision for each, from the pooled state.

Letters: E features, C labels.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, LossTerm, LossTerms, Outputs
from bertkit.objectives._pooled import WeightedClassifier


class MultiLabelClassification(WeightedClassifier):
    """Dropout and one linear layer on the pooled [CLS], a sigmoid for each label.

    ``forward`` returns ``logits`` (E, C). Labels (E, C) are 1 if a label applies, 0 if not and IGNORE if unknown; each
    known entry counts as one label. ``weights`` (C) multiply the loss of the entries that are 1. The head is that of
    Hugging Face's ``multi_label_classification``.
    """

    label = "labels"

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Binary cross-entropy, summed over features and labels."""
        labels = batch.labels[self.label]
        losses = F.binary_cross_entropy_with_logits(
            outputs["logits"].float(), labels.float(), pos_weight=self.weights, reduction="none"
        )
        return {self.label: LossTerm(losses.masked_fill(labels == IGNORE, 0).sum(), self.counts(batch)[self.label])}


def tiny(hidden_size: int, batch: Batch) -> tuple[MultiLabelClassification, Batch]:
    """A small instance and ``batch`` with labels for it, one row without, for tests."""
    labels = (torch.arange(len(batch))[:, None] + torch.arange(7)) % 3 % 2
    labels[1] = IGNORE
    return MultiLabelClassification(hidden_size, 7), batch.with_labels(**{MultiLabelClassification.label: labels})
