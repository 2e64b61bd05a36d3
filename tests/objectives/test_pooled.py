"""Heads that read the pooled state."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput, Outputs
from bertkit.contracts import Objective
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification


@pytest.mark.parametrize(
    "head",
    [SequenceClassification(24, 5), MultiLabelClassification(24, 5), Regression(24)],
    ids=lambda head: head.label,
)
def test_a_feature_of_several_rows_is_classified_by_the_sum_of_their_states(
    head: Objective, padded_batch: Batch
) -> None:
    head.eval()
    pooled = torch.randn(4, 24)
    several = replace(padded_batch, choices=torch.tensor([3, 1]))
    summed = torch.stack([pooled[0] + pooled[1] + pooled[2], pooled[3]])

    def compute(states: Tensor, batch: Batch) -> Outputs:
        return head.forward(EncoderOutput(hidden_states=torch.zeros(len(states), 13, 24), pooled=states), batch)

    ((name, found),) = compute(pooled, several).items()
    expected = compute(summed, padded_batch)[name]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
