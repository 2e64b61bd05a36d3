from __future__ import annotations

import torch

from bertkit.batch import Batch
from bertkit.objectives.nsp import IS_NEXT, IS_RANDOM, NextSentencePrediction


def test_labels_are_numbered_as_published_and_scored(padded_batch: Batch) -> None:
    assert (IS_NEXT, IS_RANDOM) == (0, 1)
    head = NextSentencePrediction(24)
    batch = padded_batch.with_labels(nsp=torch.tensor([0, 1, 1, 0]))
    metrics = head.metrics({"logits": torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0]])}, batch)
    assert (int(metrics["nsp_accuracy"].sum), metrics["nsp_accuracy"].count) == (3, 4)
    assert (int(metrics["nsp_random"].sum), metrics["nsp_random"].count) == (2, 4)
