from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.objectives.passages import TEMPERATURE, AdjacentPassages


@pytest.fixture
def batch() -> Batch:
    """Three texts in two rows each, of which the last has no label."""
    real = torch.arange(7) < torch.tensor([7, 5, 3, 7, 2, 4])[:, None]
    return Batch(
        input_ids=torch.randint(5, 99, (6, 7)).masked_fill(~real, 0),
        segment_ids=torch.zeros(6, 7, dtype=torch.long),
        attention_mask=real,
        labels={"passages": torch.tensor([0, 0, IGNORE])},
        rows_per_feature=torch.tensor([2, 2, 2]),
    )


def states(hidden: torch.Tensor) -> EncoderOutput:
    return EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0])


def test_each_half_is_sought_among_the_other_halves_in_both_directions(batch: Batch) -> None:
    hidden = torch.randn(6, 7, 12)
    means = [row[mask].mean(dim=0) for row, mask in zip(hidden, batch.attention_mask, strict=True)]
    vectors = F.normalize(torch.stack(means), dim=1)
    cosines = vectors[0::2] @ vectors[1::2].T / TEMPERATURE
    own = torch.arange(3)
    both = F.cross_entropy(cosines, own, reduction="none") + F.cross_entropy(cosines.T, own, reduction="none")
    head = AdjacentPassages()
    outputs = head(states(hidden), batch)
    term = head.loss(outputs, batch)["passages"]
    torch.testing.assert_close(term.sum, both[:2].sum() / 2)  # the text without a label is a negative only
    assert term.count == 2
    right = int((cosines.argmax(dim=1) == own)[:2].sum())
    assert int(head.metrics(outputs, batch)["passages_accuracy"].sum) == right


def test_halves_that_agree_have_no_loss_and_others_that_of_guessing(batch: Batch) -> None:
    head = AdjacentPassages()
    apart = torch.eye(3).repeat_interleave(2, dim=0)[:, None].expand(6, 7, 3)
    assert head.loss(head(states(apart), batch), batch)["passages"].sum.item() == pytest.approx(0, abs=1e-6)
    alike = torch.ones(6, 7, 3)
    guessed = head.loss(head(states(alike), batch), batch)["passages"].sum
    torch.testing.assert_close(guessed, 2 * torch.tensor(3.0).log())


def test_a_text_that_is_alone_is_compared_with_nothing(batch: Batch) -> None:
    alone = Batch(
        input_ids=batch.input_ids[:2],
        segment_ids=batch.segment_ids[:2],
        attention_mask=batch.attention_mask[:2],
        labels={"passages": torch.tensor([0])},
        rows_per_feature=torch.tensor([2]),
    )
    head = AdjacentPassages()
    outputs = head(states(torch.randn(2, 7, 12)), alone)
    assert head.counts(alone) == {"passages": 0}
    assert head.metrics(outputs, alone)["passages_accuracy"].sum.item() == 0
