"""The six choices of layers, on layers that are told apart by their values."""

from __future__ import annotations

import pytest
import torch

from bertkit.nn.mixture import MIXTURES, Mixture

LAYERS = [torch.full((3, 5, 2), float(number)) for number in range(7)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("embeddings", [0, 0]),
        ("second-to-last", [5, 5]),
        ("last", [6, 6]),
        ("sum-last-four", [4.5, 4.5]),
        ("concat-last-four", [3, 3, 4, 4, 5, 5, 6, 6]),
        ("sum-all", [3.5, 3.5]),
    ],
)
def test_the_rows_of_the_paper(name: str, expected: list[float]) -> None:
    mixture = Mixture(name, num_layers=6, hidden_size=2)
    mixed = mixture(LAYERS)
    assert mixture.width == len(expected)
    assert mixed.shape == (3, 5, len(expected))
    torch.testing.assert_close(mixed[2, 4], torch.tensor(expected, dtype=torch.float))


def test_every_row_is_tested() -> None:
    assert len(MIXTURES) == 6


def test_the_weights_of_a_sum_are_a_trained_softmax() -> None:
    mixture = Mixture("sum-last-four", num_layers=6, hidden_size=2)
    assert mixture.weights is not None
    with torch.no_grad():
        mixture.weights.copy_(torch.tensor([0.0, 0.0, 0.0, 100.0]))
    torch.testing.assert_close(mixture(LAYERS)[0, 0], torch.tensor([6.0, 6.0]))
    mixture.weights.data.zero_()
    mixture(LAYERS).sum().backward()
    assert mixture.weights.grad is not None
    assert mixture.weights.grad.all()
