"""The CRF against brute force: every tag sequence of every row is enumerated and scored."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from bertkit.nn.crf import Crf

B, T, S = 4, 5, 3
LENGTHS = (5, 1, 3, 0)
MASK = torch.arange(T) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture
def crf() -> Crf:
    """Tag 1 may not follow tag 0, and a sequence may not start with 2 or end with 0."""
    allowed = torch.ones(S + 1, S + 1, dtype=torch.bool)
    allowed[0, 1] = allowed[S, 2] = allowed[0, S] = False
    return Crf(allowed).double()


@pytest.fixture
def emissions() -> Tensor:
    return torch.randn(B, T, S, dtype=torch.float64)


def score_of(crf: Crf, emissions: Tensor, tags: tuple[int, ...]) -> float:
    """The score of one sequence in plain Python."""
    total = (crf.start[tags[0]] + crf.end[tags[-1]]).item()
    total += sum(emissions[step, tag].item() for step, tag in enumerate(tags))
    return total + sum(crf.transitions[move].item() for move in pairwise(tags))


def is_allowed(tags: tuple[int, ...]) -> bool:
    return (0, 1) not in pairwise(tags) and tags[0] != 2 and tags[-1] != 0


def sequences(length: int) -> list[tuple[int, ...]]:
    return list(product(range(S), repeat=length))


def test_the_score_of_a_sequence_equals_the_formula(crf: Crf, emissions: Tensor) -> None:
    tags = torch.randint(S, (B, T))
    for row, score in enumerate(crf.score(emissions, tags, MASK).tolist()):
        own = tuple(tags[row, : LENGTHS[row]].tolist())
        assert score == pytest.approx(score_of(crf, emissions[row], own) if own else 0.0)


def test_the_partition_is_the_sum_over_all_sequences(crf: Crf, emissions: Tensor) -> None:
    for row, found in enumerate(crf.log_partition(emissions, MASK)):
        scores = [score_of(crf, emissions[row], tags) for tags in sequences(LENGTHS[row]) if tags]
        expected = torch.tensor(scores, dtype=torch.float64).logsumexp(0) if scores else torch.zeros(()).double()
        torch.testing.assert_close(found, expected)


def test_decoding_finds_the_best_allowed_sequence(crf: Crf, emissions: Tensor) -> None:
    decoded = crf.decode(emissions, MASK)
    for row, length in enumerate(LENGTHS[:3]):
        allowed = [tags for tags in sequences(length) if is_allowed(tags)]
        best = max(allowed, key=lambda tags: score_of(crf, emissions[row], tags))
        assert tuple(decoded[row, :length].tolist()) == best
        unconstrained = max(sequences(length), key=lambda tags: score_of(crf, emissions[row], tags))
        assert is_allowed(best) and (best == unconstrained or not is_allowed(unconstrained))
    assert not decoded[~MASK].any()


def test_padding_is_ignored(crf: Crf, emissions: Tensor) -> None:
    tags = torch.randint(S, (B, T))
    other = torch.where(MASK.unsqueeze(2), emissions, torch.full_like(emissions, 99.0))
    assert torch.equal(crf.log_partition(emissions, MASK), crf.log_partition(other, MASK))
    assert torch.equal(crf.decode(emissions, MASK), crf.decode(other, MASK))
    assert torch.equal(crf.score(emissions, tags, MASK), crf.score(other, tags.masked_fill(~MASK, 0), MASK))


def test_the_gradient_of_the_partition_is_the_probability_of_a_tag(crf: Crf, emissions: Tensor) -> None:
    emissions.requires_grad_()
    (gradient,) = torch.autograd.grad(crf.log_partition(emissions, MASK).sum(), emissions)
    torch.testing.assert_close(gradient.sum(dim=2), MASK.double())
    scores = {tags: score_of(crf, emissions[2], tags) for tags in sequences(3)}
    probabilities = torch.tensor(list(scores.values())).softmax(0)
    expected = sum(float(each) for each, tags in zip(probabilities, scores, strict=True) if tags[1] == 2)
    assert float(gradient[2, 1, 2]) == pytest.approx(expected)
