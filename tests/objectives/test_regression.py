from __future__ import annotations

import torch

from bertkit.batch import IGNORE, Batch
from bertkit.objectives.regression import Regression


def test_squared_error_ignores_rows_without_a_label(padded_batch: Batch) -> None:
    head = Regression(24)
    batch = padded_batch.with_labels(number=torch.tensor([1.0, IGNORE, 3.0, 0.0]))
    term = head.loss({"value": torch.tensor([0.0, 5.0, 1.0, 0.5])}, batch)["number"]
    assert (term.sum.item(), term.count) == (1 + 4 + 0.25, 3)
