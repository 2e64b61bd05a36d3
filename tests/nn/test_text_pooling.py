"""Pooling of all tokens of a row, and of the two texts of a pair."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from bertkit.nn.text_pooling import PairPooling, TextPooling, pool_states

B, T, H = 3, 13, 28
MASK = torch.arange(T) < torch.tensor([13, 7, 5])[:, None]
SEGMENTS = (torch.arange(T) >= torch.tensor([6, 3, 4])[:, None]).long()

Kind = Literal["mean", "max"]
POOLS: tuple[Kind, ...] = ("mean", "max")


def pool_by_hand(states: torch.Tensor, kind: Kind) -> torch.Tensor:
    return states.mean(dim=0) if kind == "mean" else states.amax(dim=0)


def test_states_are_pooled_to_one_vector() -> None:
    states = torch.randn(B, T, H)
    torch.testing.assert_close(pool_states(states, MASK, "mean")[1], pool_by_hand(states[1, :7], "mean"))
    assert pool_states(states, MASK, "max")[1].equal(pool_by_hand(states[1, :7], "max"))
    assert pool_states(states, MASK, "cls").equal(states[:, 0])


@pytest.mark.parametrize("kind", ["mean", "max"])
def test_a_row_is_pooled_over_its_real_tokens(kind: Kind) -> None:
    states, pooling = torch.randn(B, T, H), TextPooling(H, kind)
    rows = torch.stack([pool_by_hand(states[row, : int(MASK[row].sum())], kind) for row in range(B)])
    found = pooling(states, torch.full((B, T, H), torch.nan), MASK, SEGMENTS)
    torch.testing.assert_close(found, torch.tanh(pooling.dense(rows)))


@pytest.mark.parametrize("kind", ["mean", "max"])
def test_two_texts_are_compared_token_by_token(kind: Kind) -> None:
    states, embeddings = torch.randn(B, T, H), torch.randn(B, T, H)
    pooling, rows = PairPooling(H, kind), []
    for row in range(B):
        begin, end = int((SEGMENTS[row] == 0).sum()), int(MASK[row].sum())
        both = torch.cat([states[row], embeddings[row]], dim=1)
        texts = [(both[:begin], embeddings[row, :begin]), (both[begin:end], embeddings[row, begin:end])]
        compared = []
        for (tokens, own), (others, other) in (texts, texts[::-1]):
            weights = (10 * torch.cosine_similarity(own[:, None], other[None], dim=2)).softmax(dim=1)
            compared.append(pool_by_hand((tokens - weights @ others).abs(), kind))
        rows.append(torch.cat(compared))
    expected = torch.tanh(pooling.dense(torch.stack(rows)))
    torch.testing.assert_close(pooling(states, embeddings, MASK, SEGMENTS), expected)


def test_likeness_is_computed_in_float32_whatever_the_precision() -> None:
    states, embeddings, pooling = torch.randn(B, T, H), torch.randn(B, T, H), PairPooling(H, "mean")
    read: list[torch.Tensor] = []
    pooling.dense.register_forward_pre_hook(lambda module, args: read.append(args[0]))
    pooling(states, embeddings, MASK, SEGMENTS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pooling(states, embeddings, MASK, SEGMENTS)
    # The weights are exact; their product with the states is in bfloat16.
    torch.testing.assert_close(read[1].float(), read[0], atol=0.02, rtol=0)


def test_equal_texts_differ_in_no_token() -> None:
    text, pooling = torch.randn(1, 5, H), PairPooling(H, "mean")
    embeddings = 9 * torch.eye(5, H).unsqueeze(0)
    read: list[torch.Tensor] = []
    pooling.dense.register_forward_pre_hook(lambda module, args: read.append(args[0]))
    pooling(text.repeat(1, 2, 1), embeddings.repeat(1, 2, 1), torch.ones(1, 10) > 0, torch.arange(10)[None] // 5)
    assert read[0].abs().max() < 0.01


def test_a_text_without_tokens_is_finite() -> None:
    states, embeddings = torch.randn(B, T, H), torch.randn(B, T, H)
    assert PairPooling(H, "mean")(states, embeddings, MASK, torch.zeros_like(SEGMENTS)).isfinite().all()


def test_padding_changes_nothing() -> None:
    states, embeddings = torch.randn(B, T, H), torch.randn(B, T, H)
    changed, others = (each.masked_fill(~MASK[..., None], 1e6) for each in (states, embeddings))
    for kind in POOLS:
        for pooling in (TextPooling(H, kind), PairPooling(H, kind)):
            expected = pooling(states, embeddings, MASK, SEGMENTS)
            assert torch.equal(expected, pooling(changed, others, MASK, SEGMENTS))
