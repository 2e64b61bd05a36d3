"""The heads that read the pooled state: classify, nsp and regress."""

from __future__ import annotations

import torch

from bertkit.contracts import IGNORE, Batch
from bertkit.objectives.classify import Classify
from bertkit.objectives.nsp import IS_NEXT, IS_RANDOM, NextSentence
from bertkit.objectives.regress import Regress


def test_class_accuracy_passes_over_rows_without_a_label(padded_batch: Batch) -> None:
    head = Classify(24, 3)
    batch = padded_batch.with_labels(**{"class": torch.tensor([2, IGNORE, 0, 1])})
    logits = torch.tensor([[0.0, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
    term = head.hits({"logits": logits}, batch)["class_accuracy"]
    assert (int(term.sum), term.count) == (2, 3)


def test_next_sentence_labels_are_the_papers(padded_batch: Batch) -> None:
    assert (IS_NEXT, IS_RANDOM) == (0, 1)
    head = NextSentence(24)
    batch = padded_batch.with_labels(nsp=torch.tensor([0, 1, 1, 0]))
    term = head.hits({"logits": torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0]])}, batch)["nsp_accuracy"]
    assert (int(term.sum), term.count) == (3, 4)


def test_squared_error_passes_over_rows_without_a_label(padded_batch: Batch) -> None:
    head = Regress(24)
    batch = padded_batch.with_labels(number=torch.tensor([1.0, IGNORE, 3.0, 0.0]))
    term = head.loss({"value": torch.tensor([0.0, 5.0, 1.0, 0.5])}, batch)["number"]
    assert (term.sum.item(), term.count) == (1 + 4 + 0.25, 3)
