"""Heads with one label per feature: what they read of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput, Outputs
from bertkit.contracts import Objective
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.multiple_choice import MultipleChoice
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
    several = replace(padded_batch, rows_per_feature=torch.tensor([3, 1]))
    summed = torch.stack([pooled[0] + pooled[1] + pooled[2], pooled[3]])

    def compute(states: Tensor, batch: Batch) -> Outputs:
        return head.forward(EncoderOutput(hidden_states=torch.zeros(len(states), 13, 24), pooled=states), batch)

    ((name, found),) = compute(pooled, several).items()
    expected = compute(summed, padded_batch)[name]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


HEADS: Mapping[str, Callable[[Pooling], Objective]] = {
    "class": lambda pooling: SequenceClassification(24, 5, pooling=pooling),
    "labels": lambda pooling: MultiLabelClassification(24, 5, pooling=pooling),
    "number": lambda pooling: Regression(24, pooling=pooling),
    "choice": lambda pooling: MultipleChoice(24, pooling=pooling),
}


@pytest.mark.parametrize("build", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_head_that_pools_reads_every_token_and_not_the_pooled_state(
    build: Callable[[Pooling], Objective], pooling: Pooling, padded_batch: Batch
) -> None:
    head = build(pooling).eval()
    assert head.reads(padded_batch) is None
    assert not head.reads_pooled
    assert not head.in_huggingface
    hidden = torch.randn(4, 13, 24, requires_grad=True)
    (output,) = head(EncoderOutput(hidden, torch.full((4, 24), float("nan"))), padded_batch).values()
    output.square().sum().backward()
    assert hidden.grad is not None
    read = hidden.grad.any(dim=2)
    assert not read[~padded_batch.attention_mask].any()
    if pooling == "mean":
        assert read[padded_batch.attention_mask].all()


@pytest.mark.parametrize("build", HEADS.values(), ids=HEADS)
def test_a_head_that_reads_the_pooled_state_reads_no_token(
    build: Callable[[Pooling], Objective], padded_batch: Batch
) -> None:
    head = build("cls").eval()
    positions = head.reads(padded_batch)
    assert positions is not None
    assert not positions.any()
    assert head.reads_pooled
    assert head.in_huggingface
    states = EncoderOutput(torch.full((4, 13, 24), float("nan")), torch.randn(4, 24))
    assert all(output.isfinite().all() for output in head(states, padded_batch).values())
