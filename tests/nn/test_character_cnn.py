"""Characters to a word vector, letter by letter and number by number."""

from __future__ import annotations

import torch
from torch import nn

from bertkit.nn.character_cnn import CharacterCnn
from bertkit.nn.highway import Highway


@torch.no_grad()
def test_every_filter_gives_the_most_it_finds() -> None:
    cnn = CharacterCnn(
        embedding=nn.Embedding(31, 3),
        convolutions=[nn.Conv1d(3, 4, 1), nn.Conv1d(3, 5, 2), nn.Conv1d(3, 2, 7)],
        activation=nn.ReLU(),
    )
    words = torch.randint(31, (6, 7))
    found = cnn(words)
    assert found.shape == (6, 11)
    for word, vector in zip(words, found, strict=True):
        letters = cnn.embedding(word)
        expected = []
        for convolution in cnn.convolutions:
            for weight, bias in zip(*convolution.parameters(), strict=True):
                width = weight.shape[1]
                places = range(7 - width + 1)
                expected.append(max(float((letters[at : at + width].T * weight).sum() + bias) for at in places))
        torch.testing.assert_close(vector, torch.tensor(expected).clamp(min=0), rtol=0, atol=1e-5)


def test_a_highway_changes_what_its_gate_opens() -> None:
    highway = Highway(carry=nn.Linear(5, 5), transform=nn.Linear(5, 5))
    states = torch.randn(3, 7, 5)
    gate = 1 / (1 + torch.exp(-(states @ highway.carry.weight.T + highway.carry.bias)))
    changed = (states @ highway.transform.weight.T + highway.transform.bias).clamp(min=0)
    torch.testing.assert_close(highway(states), gate * changed + (1 - gate) * states, rtol=0, atol=1e-6)
    with torch.no_grad():
        highway.carry.bias.fill_(-100)
    assert torch.equal(highway(states), states)


def test_a_highway_takes_products_of_fewer_digits() -> None:
    """Words come as float32 from their table, and under autocast products are bfloat16."""
    highway = Highway(carry=nn.Linear(5, 5), transform=nn.Linear(5, 5))
    states = torch.randn(3, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        few = highway(states)
    torch.testing.assert_close(few, highway(states), rtol=0, atol=0.02)
