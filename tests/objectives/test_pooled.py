"""The heads that read the pooled state: classify, nsp and regress."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertkit.batch import IGNORE, Batch, EncoderOutput, Outputs
from bertkit.contracts import Objective
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.nsp import IS_NEXT, IS_RANDOM, NextSentencePrediction
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification


def test_class_accuracy_passes_over_rows_without_a_label(padded_batch: Batch) -> None:
    head = SequenceClassification(24, 3)
    batch = padded_batch.with_labels(**{"class": torch.tensor([2, IGNORE, 0, 1])})
    logits = torch.tensor([[0.0, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
    term = head.metrics({"logits": logits}, batch)["class_accuracy"]
    assert (int(term.sum), term.count) == (2, 3)


def test_next_sentence_labels_are_the_papers(padded_batch: Batch) -> None:
    assert (IS_NEXT, IS_RANDOM) == (0, 1)
    head = NextSentencePrediction(24)
    batch = padded_batch.with_labels(nsp=torch.tensor([0, 1, 1, 0]))
    term = head.metrics({"logits": torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0]])}, batch)["nsp_accuracy"]
    assert (int(term.sum), term.count) == (3, 4)


def test_squared_error_passes_over_rows_without_a_label(padded_batch: Batch) -> None:
    head = Regression(24)
    batch = padded_batch.with_labels(number=torch.tensor([1.0, IGNORE, 3.0, 0.0]))
    term = head.loss({"value": torch.tensor([0.0, 5.0, 1.0, 0.5])}, batch)["number"]
    assert (term.sum.item(), term.count) == (1 + 4 + 0.25, 3)


@pytest.mark.parametrize(
    "head",
    [SequenceClassification(24, 5), MultiLabelClassification(24, 5), Regression(24)],
    ids=lambda head: head.label,
)
def test_a_feature_of_several_rows_is_told_from_their_sum(head: Objective, padded_batch: Batch) -> None:
    head.eval()
    pooled = torch.randn(4, 24)
    several = replace(padded_batch, choices=torch.tensor([3, 1]))
    summed = torch.stack([pooled[0] + pooled[1] + pooled[2], pooled[3]])

    def ask(states: Tensor, batch: Batch) -> Outputs:
        return head.forward(EncoderOutput(hidden_states=torch.zeros(len(states), 13, 24), pooled=states), batch)

    ((name, found),) = ask(pooled, several).items()
    expected = ask(summed, padded_batch)[name]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
