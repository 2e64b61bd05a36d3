from __future__ import annotations

from dataclasses import replace

import torch

from bertkit.batch import Batch, EncoderOutput
from bertkit.objectives.multiple_choice import MultipleChoice


def test_choices_of_different_numbers_are_padded_and_never_chosen(padded_batch: Batch) -> None:
    batch = replace(padded_batch, rows_per_feature=torch.tensor([1, 3])).with_labels(choice=torch.tensor([0, 2]))
    head = MultipleChoice(24).eval()
    pooled = torch.randn(4, 24)
    outputs = head(EncoderOutput(hidden_states=torch.zeros(4, 13, 24), pooled=pooled), batch)
    scores = head.vector(pooled).squeeze(-1)
    assert torch.equal(outputs["logits"][0], torch.stack([scores[0], torch.zeros(()), torch.zeros(())]))
    assert torch.equal(outputs["logits"][1], scores[1:])
    expected = -torch.log_softmax(scores[1:], dim=0)[2]  # the only choice of the first example has probability 1
    torch.testing.assert_close(head.loss(outputs, batch)["choice"].sum, expected)
    absent = head.loss({"logits": torch.tensor([[-5.0, 0, 0], [-99, -99, 9]])}, batch)["choice"]
    assert (absent.sum.item(), absent.count) == (0, 2)
