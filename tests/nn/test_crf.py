"""The chain against brute force: every sequence of tags of every row is written out and scored one by one."""

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
    """After tag 0 there is no tag 1, no row begins with 2 or ends with 0."""
    allowed = torch.ones(S + 1, S + 1, dtype=torch.bool)
    allowed[0, 1] = allowed[S, 2] = allowed[0, S] = False
    return Crf(allowed).double()


@pytest.fixture
def said() -> Tensor:
    return torch.randn(B, T, S, dtype=torch.float64)


def written_out(crf: Crf, said: Tensor, tags: tuple[int, ...]) -> float:
    """The score of one sequence, added up in plain Python."""
    total = (crf.start[tags[0]] + crf.end[tags[-1]]).item()
    total += sum(said[step, tag].item() for step, tag in enumerate(tags))
    return total + sum(crf.transitions[move].item() for move in pairwise(tags))


def is_allowed(tags: tuple[int, ...]) -> bool:
    return (0, 1) not in pairwise(tags) and tags[0] != 2 and tags[-1] != 0


def sequences(length: int) -> list[tuple[int, ...]]:
    return list(product(range(S), repeat=length))


def test_scores(crf: Crf, said: Tensor) -> None:
    tags = torch.randint(S, (B, T))
    for row, score in enumerate(crf.score(said, tags, MASK).tolist()):
        own = tuple(tags[row, : LENGTHS[row]].tolist())
        assert score == pytest.approx(written_out(crf, said[row], own) if own else 0.0)


def test_the_partition_sums_over_all_sequences(crf: Crf, said: Tensor) -> None:
    for row, found in enumerate(crf.log_partition(said, MASK)):
        scores = [written_out(crf, said[row], tags) for tags in sequences(LENGTHS[row]) if tags]
        expected = torch.tensor(scores, dtype=torch.float64).logsumexp(0) if scores else torch.zeros(()).double()
        torch.testing.assert_close(found, expected)


def test_the_best_sequence_is_the_best_of_those_allowed(crf: Crf, said: Tensor) -> None:
    decoded = crf.decode(said, MASK)
    for row, length in enumerate(LENGTHS[:3]):
        allowed = [tags for tags in sequences(length) if is_allowed(tags)]
        best = max(allowed, key=lambda tags: written_out(crf, said[row], tags))
        assert tuple(decoded[row, :length].tolist()) == best
        free = max(sequences(length), key=lambda tags: written_out(crf, said[row], tags))
        assert is_allowed(best) and (best == free or not is_allowed(free))
    assert not decoded[~MASK].any()


def test_what_stands_behind_a_row_is_nothing_to_it(crf: Crf, said: Tensor) -> None:
    tags = torch.randint(S, (B, T))
    other = torch.where(MASK.unsqueeze(2), said, torch.full_like(said, 99.0))
    assert torch.equal(crf.log_partition(said, MASK), crf.log_partition(other, MASK))
    assert torch.equal(crf.decode(said, MASK), crf.decode(other, MASK))
    assert torch.equal(crf.score(said, tags, MASK), crf.score(other, tags.masked_fill(~MASK, 0), MASK))


def test_the_gradient_of_the_partition_is_the_probability_of_a_tag(crf: Crf, said: Tensor) -> None:
    said.requires_grad_()
    (gradient,) = torch.autograd.grad(crf.log_partition(said, MASK).sum(), said)
    torch.testing.assert_close(gradient.sum(dim=2), MASK.double())
    scores = {tags: written_out(crf, said[2], tags) for tags in sequences(3)}
    shares = torch.tensor(list(scores.values())).softmax(0)
    expected = sum(float(share) for share, tags in zip(shares, scores, strict=True) if tags[1] == 2)
    assert float(gradient[2, 1, 2]) == pytest.approx(expected)
