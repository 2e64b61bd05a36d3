"""One of several classes for each feature, from the pooled state.

Letters: E features, C classes.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, LossTerm, LossTerms, Outputs
from bertkit.objectives._pooled import WeightedClassifier


class SequenceClassification(WeightedClassifier):
    """Dropout and one linear layer on the pooled [CLS] (google-research/bert ``run_classifier.py``).

    ``forward`` returns ``logits`` (E, C). Features with the label IGNORE are not counted. ``weights`` (C) multiply the
    loss of the features of each class.
    """

    label = "class"

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed."""
        logits, labels = outputs["logits"].float(), batch.labels[self.label]
        total = F.cross_entropy(logits, labels, self.weights, ignore_index=IGNORE, reduction="sum")
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}


def tiny(hidden_size: int, batch: Batch) -> tuple[SequenceClassification, Batch]:
    """A small instance and ``batch`` with labels for it, one missing, for tests."""
    labels = torch.arange(len(batch)) % 5
    labels[1] = IGNORE
    return SequenceClassification(hidden_size, 5), batch.with_labels(**{SequenceClassification.label: labels})
