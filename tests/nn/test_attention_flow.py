"""The attention flow of BiDAF against its formula, token by token, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.nn.text_pairs import FIRST, SECOND, B, T, W, make_text, softmax, weighted_sum

from bertkit.nn.attention_flow import AttentionFlow


def test_attention_flow_equals_the_formula() -> None:
    (context, context_mask), (query, query_mask) = make_text(SECOND), make_text(FIRST)
    flow = AttentionFlow(W).double()
    weight = flow.similarity.weight.detach().numpy()[0]
    flowed = flow(context, query, context_mask, query_mask).detach().numpy()
    assert flowed.shape == (B, T, 4 * W)
    for row in range(B):
        h, u = context[row, : SECOND[row]].numpy(), query[row, : FIRST[row]].numpy()
        scores = [[float(weight @ np.concatenate([t, j, t * j])) for j in u] for t in h]
        attended_context = weighted_sum(softmax([max(line) for line in scores]), h)
        for position, (token, line) in enumerate(zip(h, scores, strict=True)):
            attended_query = weighted_sum(softmax(line), u)
            expected = np.concatenate([token, attended_query, token * attended_query, token * attended_context])
            np.testing.assert_allclose(flowed[row, position], expected)


def test_the_query_attends_to_the_context_token_most_similar_to_one_of_its_words() -> None:
    """By hand: scores are plain products, and the second word of the context is the first of the query."""
    flow = AttentionFlow(2)
    with torch.no_grad():
        flow.similarity.weight.copy_(torch.tensor([[0.0, 0, 0, 0, 1, 1]]))
    context = torch.tensor([[[0.0, 1.0], [30.0, 0.0], [0.0, 2.0]]])
    query = torch.tensor([[[30.0, 0.0], [0.0, 0.1]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    flowed = flow(context, query, mask, mask[:, :2])
    assert flowed[0, 1].tolist() == pytest.approx([30, 0, 30, 0, 900, 0, 900, 0])
    assert flowed[0, 0, 6:].tolist() == pytest.approx([0, 0])  # [0, 1] * [30, 0]


def test_padding_is_ignored() -> None:
    (context, context_mask), (query, query_mask) = make_text(FIRST), make_text(SECOND)
    flow = AttentionFlow(W).double()
    expected = flow(context, query, context_mask, query_mask)
    changed = flow(
        context.masked_fill(~context_mask.unsqueeze(2), 57.0),
        query.masked_fill(~query_mask.unsqueeze(2), 57.0),
        context_mask,
        query_mask,
    )
    assert torch.equal(expected[context_mask], changed[context_mask])


def test_an_empty_query_gives_finite_states() -> None:
    context, context_mask = make_text(FIRST)
    empty = torch.zeros(B, 1, W, dtype=torch.float64)
    flow = AttentionFlow(W).double()
    assert flow(context, empty, context_mask, torch.zeros(B, 1, dtype=torch.bool)).isfinite().all()
