from __future__ import annotations

import pytest
import torch

from bertkit.batch import IGNORE, Batch
from bertkit.objectives.multi_label import MultiLabelClassification


def test_unknown_labels_are_not_counted(padded_batch: Batch) -> None:
    labels = torch.tensor([[1, 0, 1], [IGNORE, 0, 0], [1, 1, IGNORE], [0, 0, 0]])
    batch = padded_batch.with_labels(labels=labels)
    head = MultiLabelClassification(24, 3)
    assert head.loss({"logits": torch.zeros(4, 3)}, batch)["labels"].sum.item() == pytest.approx(
        10 * 0.693147, rel=1e-5
    )


def test_weights_multiply_the_loss_of_labels_that_apply(padded_batch: Batch) -> None:
    batch = padded_batch.with_labels(labels=torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1]]))
    outputs = {"logits": torch.zeros(4, 2)}
    plain, weighted = (
        MultiLabelClassification(24, 2, weights=weights).loss(outputs, batch)["labels"].sum
        for weights in (None, [3.0, 7.0])
    )
    torch.testing.assert_close(weighted, plain / 8 * (2 * 3 + 2 * 7 + 4))
