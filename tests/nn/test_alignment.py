"""Two texts beside each other: the alignment and the attention flow against their formulas, token by token."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bertkit.nn.alignment import align, masked_softmax
from bertkit.nn.attention_flow import AttentionFlow

B, S, T, W = 3, 5, 7, 4
FIRST, SECOND = (5, 2, 1), (3, 7, 1)
Array = NDArray[np.float64]


def make_text(lengths: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens, and which of them are real; what stands under padding is no zero."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), W, dtype=torch.float64), mask


def soft(scores: list[float]) -> list[float]:
    total = sum(np.exp(score) for score in scores)
    return [float(np.exp(score) / total) for score in scores]


def mixed(shares: list[float], tokens: Array) -> Array:
    return np.asarray(sum(share * token for share, token in zip(shares, tokens, strict=True)))


def test_the_alignment_is_its_formula() -> None:
    (first, first_mask), (second, second_mask) = make_text(FIRST), make_text(SECOND)
    for_first, for_second = align(first, second, first_mask, second_mask)
    for row in range(B):
        a, b = first[row, : FIRST[row]].numpy(), second[row, : SECOND[row]].numpy()
        for place, token in enumerate(a):
            expected = mixed(soft([float(np.dot(token, other)) for other in b]), b)
            np.testing.assert_allclose(for_first[row, place].numpy(), expected)
        for place, token in enumerate(b):
            expected = mixed(soft([float(np.dot(other, token)) for other in a]), a)
            np.testing.assert_allclose(for_second[row, place].numpy(), expected)


def test_a_token_aligns_with_the_one_that_it_is_like() -> None:
    first = torch.tensor([[[50.0, 0.0], [0.0, 50.0]]])
    second = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [9.0, 9.0]]])
    real = torch.tensor([[True, True, False]])
    for_first, for_second = align(first, second, torch.ones(1, 2, dtype=torch.bool), real)
    torch.testing.assert_close(for_first, torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    torch.testing.assert_close(for_second[:, :2], torch.tensor([[[0.0, 50.0], [50.0, 0.0]]]))


def test_the_attention_flow_is_its_formula() -> None:
    (context, context_mask), (query, query_mask) = make_text(SECOND), make_text(FIRST)
    flow = AttentionFlow(W).double()
    weight = flow.similarity.weight.detach().numpy()[0]
    flowed = flow(context, query, context_mask, query_mask).detach().numpy()
    assert flowed.shape == (B, T, 4 * W)
    for row in range(B):
        h, u = context[row, : SECOND[row]].numpy(), query[row, : FIRST[row]].numpy()
        scores = [[float(weight @ np.concatenate([t, j, t * j])) for j in u] for t in h]
        sought = mixed(soft([max(line) for line in scores]), h)
        for place, (token, line) in enumerate(zip(h, scores, strict=True)):
            found = mixed(soft(line), u)
            expected = np.concatenate([token, found, token * found, token * sought])
            np.testing.assert_allclose(flowed[row, place], expected)


def test_the_query_seeks_the_token_that_one_of_its_words_is_like() -> None:
    """By hand: scores are plain products, and the second word of the context is the first of the query."""
    flow = AttentionFlow(2)
    with torch.no_grad():
        flow.similarity.weight.copy_(torch.tensor([[0.0, 0, 0, 0, 1, 1]]))
    context = torch.tensor([[[0.0, 1.0], [30.0, 0.0], [0.0, 2.0]]])
    query = torch.tensor([[[30.0, 0.0], [0.0, 0.1]]])
    yes = torch.ones(1, 3, dtype=torch.bool)
    flowed = flow(context, query, yes, yes[:, :2])
    assert flowed[0, 1].tolist() == pytest.approx([30, 0, 30, 0, 900, 0, 900, 0])
    assert flowed[0, 0, 6:].tolist() == pytest.approx([0, 0])  # [0, 1] * [30, 0]


def test_what_stands_under_padding_is_never_read() -> None:
    (first, first_mask), (second, second_mask) = make_text(FIRST), make_text(SECOND)
    flow = AttentionFlow(W).double()
    other_first, other_second = first.clone(), second.clone()
    other_first[~first_mask], other_second[~second_mask] = 57.0, 57.0
    for way in (align, lambda a, b, *masks: (flow(a, b, *masks),)):
        plain = way(first, second, first_mask, second_mask)
        spoilt = way(other_first, other_second, first_mask, second_mask)
        for mask, one, two in zip((first_mask, second_mask), plain, spoilt, strict=False):
            assert torch.equal(one[mask], two[mask])


def test_a_softmax_over_nothing_is_nothing() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    shares = masked_softmax(scores, torch.tensor([[False, False, False], [True, False, True]]))
    assert shares[0].tolist() == [0, 0, 0]
    torch.testing.assert_close(shares[1, [0, 2]], torch.tensor([4.0, 6.0]).softmax(0))
    shares[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    assert scores.grad[0].tolist() == [0, 0, 0]


def test_a_text_beside_nothing_finds_nothing() -> None:
    first, first_mask = make_text(FIRST)
    nothing = torch.zeros(B, 1, W, dtype=torch.float64)
    for_first, for_nothing = align(first, nothing, first_mask, torch.zeros(B, 1, dtype=torch.bool))
    assert not for_first.any()
    assert for_nothing.isfinite().all()
    flow = AttentionFlow(W).double()
    assert flow(first, nothing, first_mask, torch.zeros(B, 1, dtype=torch.bool)).isfinite().all()
