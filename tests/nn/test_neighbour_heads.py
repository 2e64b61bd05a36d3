from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from bertkit.nn.neighbour_heads import (
    OFFSETS,
    fill_constant,
    fill_heads,
    fill_positions,
    fill_rotary_heads,
    fits,
    fits_rotary,
)
from bertkit.nn.rotary import rotate

SIGMA = 0.03


def attention(qkv: nn.Linear, states: torch.Tensor, num_heads: int) -> torch.Tensor:
    """(heads, T, T) probabilities of each query over the keys."""
    query, key, _ = qkv(states).chunk(3, dim=-1)
    query, key = (part.view(len(states), num_heads, -1).transpose(0, 1) for part in (query, key))
    return torch.softmax(query @ key.transpose(1, 2) / math.sqrt(query.shape[-1]), dim=-1)


@pytest.mark.parametrize(("hidden", "num_heads"), [(256, 4), (128, 2), (96, 6)])
def test_heads_attend_to_their_neighbour(hidden: int, num_heads: int) -> None:
    width = hidden // num_heads
    word, position, segment = (torch.randn(rows, hidden) * SIGMA for rows in (99, 64, 2))
    segment *= 0.2
    fill_positions(position, [word, segment], width=width, sigma=SIGMA)
    maps = [nn.Linear(hidden, 3 * hidden) for _ in range(2)]
    for each in maps:
        nn.init.normal_(each.weight, std=SIGMA)
        nn.init.zeros_(each.bias)
    fill_heads(maps, num_heads=num_heads)
    rows = min(64, 2 * width)
    states = word[torch.randint(99, (rows,))] + position[:rows] + segment[0]
    states = nn.functional.layer_norm(states, (hidden,))
    for layer, offsets in zip(maps, OFFSETS, strict=False):
        probabilities = attention(layer, states, num_heads)
        for head, offset in enumerate(offsets[:num_heads]):
            on_neighbour = probabilities[head].diagonal(offset).mean()
            elsewhere = probabilities[head].diagonal(-offset).mean()
            assert on_neighbour > 0.6 > 0.1 > elsewhere


def test_values_and_other_heads_stay_random() -> None:
    linear = nn.Linear(96, 3 * 96)
    before = linear.weight.detach().clone()
    fill_heads([linear], num_heads=6)
    assert torch.equal(linear.weight[2 * 96 :], before[2 * 96 :])
    assert torch.equal(linear.weight[4 * 16 : 96], before[4 * 16 : 96])
    assert not torch.equal(linear.weight[:16], before[:16])


def test_words_and_segments_leave_the_columns_of_positions_free() -> None:
    word, position, segment = torch.ones(9, 32), torch.ones(7, 32), torch.ones(2, 32)
    fill_positions(position, [word, segment], width=8, sigma=SIGMA)
    assert (position[:, :-8] == 0).all()
    assert position[:, -8:].square().mean().sqrt().item() == pytest.approx(SIGMA, rel=1e-6)
    for table in (word, segment):
        assert (table[:, -8:] == 0).all()
        assert (table[:, :-8] == 1).all()


@pytest.mark.parametrize(("hidden", "heads", "expected"), [(256, 4, True), (64, 1, False), (15, 5, False)])
def test_one_head_or_an_odd_width_has_no_room(hidden: int, heads: int, expected: bool) -> None:
    assert fits(hidden, heads) is expected


@pytest.mark.parametrize(("hidden", "num_heads"), [(256, 4), (128, 2), (96, 6), (768, 12)])
@pytest.mark.parametrize("theta", [10_000.0, 160_000.0])
def test_rotary_heads_attend_to_their_neighbour(hidden: int, num_heads: int, theta: float) -> None:
    width, rows = hidden // num_heads, 128
    word = torch.randn(99, hidden) * SIGMA
    fill_constant(word, sigma=SIGMA)
    maps = [nn.Linear(hidden, 3 * hidden, bias=False) for _ in range(2)]
    for each in maps:
        nn.init.normal_(each.weight, std=SIGMA)
    fill_rotary_heads(maps, num_heads=num_heads, thetas=[theta, theta])
    states = nn.functional.layer_norm(word[torch.randint(99, (rows,))], (hidden,))
    for layer, offsets in zip(maps, OFFSETS, strict=False):
        query, key = (
            rotate(part, torch.arange(rows), heads=num_heads, width=width, theta=theta)
            for part in layer(states).chunk(3, dim=-1)[:2]
        )
        query, key = (part.view(rows, num_heads, width).transpose(0, 1) for part in (query, key))
        probabilities = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(width), dim=-1)
        for head, offset in enumerate(offsets[:num_heads]):
            on_neighbour = probabilities[head].diagonal(offset).mean()
            elsewhere = probabilities[head].diagonal(-offset).mean()
            assert on_neighbour > 0.5 > 0.15 > elsewhere


@pytest.mark.parametrize(
    ("hidden", "heads", "expected"), [(256, 4, True), (32, 2, True), (64, 1, False), (28, 2, False), (51, 3, False)]
)
def test_rotary_heads_need_a_width_of_16(hidden: int, heads: int, expected: bool) -> None:
    assert fits_rotary(hidden, heads) is expected
