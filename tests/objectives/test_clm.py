from __future__ import annotations

import math

import torch
from torch import nn

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.objectives.clm import CausalLanguageModel, label_next


def make_batch(rows: list[list[int]]) -> Batch:
    """Rows of ids with 0 as padding."""
    ids = torch.tensor(rows)
    return Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=ids > 0, labels={})


def test_labels_are_the_next_tokens() -> None:
    labelled = label_next(make_batch([[7, 3, 9, 4], [5, 8, 0, 0], [6, 0, 0, 0]]))
    assert labelled.labels["clm"].tolist() == [
        [3, 9, 4, IGNORE],
        [8, IGNORE, IGNORE, IGNORE],
        [IGNORE, IGNORE, IGNORE, IGNORE],
    ]
    assert CausalLanguageModel(nn.Embedding(99, 12)).counts(labelled) == {"clm": 4}


def test_loss_and_accuracy_of_a_small_case() -> None:
    """The embeddings are three unit vectors: a state of length ``s`` along one has the logits s, 0 and 0."""
    head = CausalLanguageModel(nn.Embedding(3, 3, _weight=torch.eye(3)))
    batch = label_next(make_batch([[1, 2, 1], [2, 2, 0]]))
    hidden = torch.zeros(2, 3, 3)
    hidden[0, 0, 2] = 2.0  # right
    hidden[0, 1, 2] = 3.0  # wrong: 1 comes next
    hidden[0, 2, 0] = hidden[1, 1, 0] = 9.0  # nothing comes next
    hidden[1, 0, 2] = 1.0  # right
    outputs = head(EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0]), batch)
    term, metrics = head.loss(outputs, batch)["clm"], head.metrics(outputs, batch)["clm_accuracy"]
    expected = sum(math.log(math.exp(length) + 2) - logit for length, logit in ((2, 2), (3, 0), (1, 1)))
    torch.testing.assert_close(term.sum.item(), expected, rtol=1e-6, atol=0)
    assert (term.count, metrics.sum.item(), metrics.count) == (3, 2, 3)


def test_the_tied_embedding_is_no_parameter_of_the_head() -> None:
    assert not CausalLanguageModel(nn.Embedding(99, 12)).state_dict()
    assert not list(CausalLanguageModel(nn.Embedding(99, 12)).parameters())
