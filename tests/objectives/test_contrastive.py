from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.objectives.contrastive import ContrastiveSimilarity

ROWS = 6
"""Three examples of two texts."""


@pytest.fixture
def batch() -> Batch:
    lengths = torch.tensor([7, 5, 3, 7, 2, 4])
    real = torch.arange(7) < lengths[:, None]
    return Batch(
        input_ids=torch.randint(5, 99, (ROWS, 7)).masked_fill(~real, 0),
        segment_ids=torch.zeros(ROWS, 7, dtype=torch.long),
        attention_mask=real,
        labels={"similarity": torch.tensor([1.0, 0.25, 0.5])},
        rows_per_feature=torch.tensor([2, 2, 2]),
    )


@pytest.fixture
def states() -> EncoderOutput:
    hidden = torch.randn(ROWS, 7, 12)
    return EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0])


def vectors(states: EncoderOutput, batch: Batch) -> torch.Tensor:
    return torch.stack(
        [row[mask].mean(dim=0) for row, mask in zip(states.hidden_states, batch.attention_mask, strict=True)]
    )


def test_scores_are_fitted_by_the_squared_error_of_the_cosine(states: EncoderOutput, batch: Batch) -> None:
    objective = ContrastiveSimilarity()
    outputs = objective(states, batch)
    pooled = vectors(states, batch)
    cosines = F.cosine_similarity(pooled[0::2], pooled[1::2])
    torch.testing.assert_close(outputs["cosine"], cosines)
    term = objective.loss(outputs, batch)["similarity"]
    torch.testing.assert_close(term.sum, (cosines - batch.labels["similarity"]).square().sum())
    assert term.count == 3


def test_the_other_second_texts_of_a_batch_are_negatives(states: EncoderOutput, batch: Batch) -> None:
    """As MultipleNegativesRankingLoss of sentence-transformers, whose scale is 1 / temperature."""
    objective = ContrastiveSimilarity(temperature=0.05)
    pooled = F.normalize(vectors(states, batch), dim=1)
    expected = F.cross_entropy(pooled[0::2] @ pooled[1::2].T * 20, torch.arange(3), reduction="sum")
    term = objective.loss(objective(states, batch), batch)["similarity"]
    torch.testing.assert_close(term.sum, expected)


@pytest.mark.parametrize("equal", [(1, 5), (0, 4)])
def test_an_equal_text_is_no_negative(states: EncoderOutput, batch: Batch, equal: tuple[int, int]) -> None:
    one, other = equal
    ids, mask = batch.input_ids.clone(), batch.attention_mask.clone()
    ids[other], mask[other] = ids[one], mask[one]
    batch = replace(batch, input_ids=ids, attention_mask=mask)
    objective = ContrastiveSimilarity(temperature=0.5)
    pooled = F.normalize(vectors(states, batch), dim=1)
    logits = pooled[0::2] @ pooled[1::2].T / 0.5
    logits[0, 2] = logits[2, 0] = -torch.inf
    expected = F.cross_entropy(logits, torch.arange(3), reduction="sum")
    torch.testing.assert_close(objective.loss(objective(states, batch), batch)["similarity"].sum, expected)


def test_examples_without_a_label_are_not_counted(states: EncoderOutput, batch: Batch) -> None:
    for temperature in (None, 0.05):
        objective = ContrastiveSimilarity(temperature=temperature)
        partly = replace(batch, labels={"similarity": torch.tensor([1.0, float(IGNORE), 0.5])})
        outputs = objective(states, partly)
        term = objective.loss(outputs, partly)["similarity"]
        assert term.count == 2
        whole = objective.loss(outputs, batch)["similarity"]
        assert 0 < term.sum < whole.sum


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_only_the_states_that_are_pooled_are_read(states: EncoderOutput, batch: Batch, pooling: str) -> None:
    objective = ContrastiveSimilarity(pooling=pooling)  # type: ignore[arg-type]
    read = objective.reads(batch)
    assert (read is None) == (pooling != "cls")
    kept = batch.attention_mask if read is None else read
    hidden = states.hidden_states.masked_fill(~kept[:, :, None], torch.nan)
    changed = objective(replace(states, hidden_states=hidden.nan_to_num(77.0)), batch)["cosine"]
    torch.testing.assert_close(changed, objective(states, batch)["cosine"])
