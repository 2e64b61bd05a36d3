from __future__ import annotations

import torch

from bertkit.batch import IGNORE, Batch
from bertkit.objectives.sequence_classification import SequenceClassification


def test_rows_without_a_label_do_not_count(padded_batch: Batch) -> None:
    batch = padded_batch.with_labels(**{"class": torch.tensor([2, IGNORE, 0, 1])})
    logits = 99 * torch.tensor([[0.0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]])
    term = SequenceClassification(24, 3).loss({"logits": logits}, batch)["class"]
    assert (term.sum.item(), term.count) == (0, 3)


def test_weights_multiply_the_loss_of_their_class(padded_batch: Batch) -> None:
    batch = padded_batch.with_labels(**{"class": torch.tensor([2, IGNORE, 0, 2])})
    outputs = {"logits": torch.zeros(4, 3)}
    plain = SequenceClassification(24, 3).loss(outputs, batch)["class"]
    weighted = SequenceClassification(24, 3, weights=[1.0, 1.0, 7.0]).loss(outputs, batch)["class"]
    torch.testing.assert_close(weighted.sum, plain.sum / 3 * (1 + 7 + 7))
    assert weighted.count == plain.count == 3
    whole = SequenceClassification(24, 3, weights=[1, 1, 7]).loss(outputs, batch)["class"]
    torch.testing.assert_close(whole.sum, weighted.sum)
