from __future__ import annotations

import torch

from bertkit.batch import Batch
from bertkit.objectives.nsp import IS_NEXT, IS_RANDOM, NextSentencePrediction


def test_labels_are_numbered_as_published_and_scored(padded_batch: Batch) -> None:
    assert (IS_NEXT, IS_RANDOM) == (0, 1)
    head = NextSentencePrediction(24)
    batch = padded_batch.with_labels(nsp=torch.tensor([0, 1, 1, 0]))
    term = head.metrics({"logits": torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0]])}, batch)["nsp_accuracy"]
    assert (int(term.sum), term.count) == (3, 4)
