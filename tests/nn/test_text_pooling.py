"""Pooling of all tokens of a row, and of the two texts of a pair."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from bertkit.nn.text_pooling import TextPooling, pool_states

B, T, H = 3, 13, 28
MASK = torch.arange(T) < torch.tensor([13, 7, 5])[:, None]
SEGMENTS = (torch.arange(T) >= torch.tensor([6, 3, 4])[:, None]).long()

Kind = Literal["mean", "max"]


def pool_by_hand(states: torch.Tensor, kind: Kind) -> torch.Tensor:
    return states.mean(dim=0) if kind == "mean" else states.amax(dim=0)


def test_states_are_pooled_to_one_vector() -> None:
    states = torch.randn(B, T, H)
    torch.testing.assert_close(pool_states(states, MASK, "mean")[1], pool_by_hand(states[1, :7], "mean"))
    assert pool_states(states, MASK, "max")[1].equal(pool_by_hand(states[1, :7], "max"))
    assert pool_states(states, MASK, "cls").equal(states[:, 0])


@pytest.mark.parametrize("kind", ["mean", "max"])
def test_a_row_is_pooled_over_its_real_tokens(kind: Kind) -> None:
    states, pooling = torch.randn(B, T, H), TextPooling(H, kind, pair=False)
    rows = torch.stack([pool_by_hand(states[row, : int(MASK[row].sum())], kind) for row in range(B)])
    found = pooling(states, torch.full((B, T, H), torch.nan), MASK, SEGMENTS)
    torch.testing.assert_close(found, torch.tanh(pooling.dense(rows)))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", ["mean", "max"])
def test_a_pair_is_compared_by_the_states_and_the_embeddings_of_its_two_texts(kind: Kind, symmetric: bool) -> None:
    states, embeddings = torch.randn(B, T, H), torch.randn(B, T, H)
    pooling = TextPooling(H, kind, pair=True, symmetric=symmetric)
    rows = []
    for row in range(B):
        begin, end = int((SEGMENTS[row] == 0).sum()), int(MASK[row].sum())
        both = torch.cat([states[row], embeddings[row]], dim=1)
        u, v = pool_by_hand(both[:begin], kind), pool_by_hand(both[begin:end], kind)
        rows.append(torch.cat([*(() if symmetric else (u, v)), (u - v).abs(), u * v]))
    expected = torch.tanh(pooling.dense(torch.stack(rows)))
    torch.testing.assert_close(pooling(states, embeddings, MASK, SEGMENTS), expected)


def test_padding_changes_nothing() -> None:
    states, embeddings = torch.randn(B, T, H), torch.randn(B, T, H)
    changed, others = (each.masked_fill(~MASK[..., None], 1e6) for each in (states, embeddings))
    for kind in ("mean", "max"):
        for pair in (False, True):
            pooling = TextPooling(H, "mean" if kind == "mean" else "max", pair=pair)
            expected = pooling(states, embeddings, MASK, SEGMENTS)
            assert torch.equal(expected, pooling(changed, others, MASK, SEGMENTS))
