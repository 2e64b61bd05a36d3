"""The six mixtures of BERT's Table 7, on layers of constant values, and ELMo's mixture against its formula."""

from __future__ import annotations

import pytest
import torch

from bertkit.nn.mixture import MIXTURES, LayerMixture, ScalarMixture

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
def test_each_mixture_combines_the_layers_of_its_row_in_the_paper(name: str, expected: list[float]) -> None:
    mixture = LayerMixture(name, num_layers=6, hidden_size=2)
    mixed = mixture(LAYERS)
    assert mixture.width == len(expected)
    assert mixed.shape == (3, 5, len(expected))
    torch.testing.assert_close(mixed[2, 4], torch.tensor(expected, dtype=torch.float))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("embeddings", [0]), ("second-to-last", [1]), ("concat-last-four", [1, 2]), ("sum-all", [1.5])],
)
def test_only_embeddings_are_read_as_embeddings_of_a_small_network(name: str, expected: list[float]) -> None:
    layers = [torch.full((1, 1), float(layer)) for layer in range(3)]
    assert LayerMixture(name, num_layers=2, hidden_size=1)(layers).tolist() == [expected]


def test_all_mixtures_are_tested() -> None:
    assert len(MIXTURES) == 6


def test_the_weights_of_a_sum_are_a_trained_softmax() -> None:
    mixture = LayerMixture("sum-last-four", num_layers=6, hidden_size=2)
    assert mixture.weights is not None
    with torch.no_grad():
        mixture.weights.copy_(torch.tensor([0.0, 0.0, 0.0, 100.0]))
    torch.testing.assert_close(mixture(LAYERS)[0, 0], torch.tensor([6.0, 6.0]))
    mixture.weights.data.zero_()
    mixture(LAYERS).sum().backward()
    assert mixture.weights.grad is not None
    assert mixture.weights.grad.all()


def make_scalar_mixture() -> ScalarMixture:
    mixture = ScalarMixture(2)
    with torch.no_grad():
        mixture.weights.copy_(torch.tensor([0.3, -1.1, 0.7]))
        mixture.gamma.fill_(2.5)
    return mixture


def test_elmos_mixture_equals_the_formula() -> None:
    layers = [torch.randn(3, 5, 7) for _ in range(3)]
    weights = torch.tensor([0.3, -1.1, 0.7]).exp() / torch.tensor([0.3, -1.1, 0.7]).exp().sum()
    expected = 2.5 * sum(weight * layer for weight, layer in zip(weights, layers, strict=True))
    torch.testing.assert_close(make_scalar_mixture()(layers), expected)


def test_elmos_mixture_is_initially_the_mean_of_all_layers() -> None:
    mixture = ScalarMixture(6)
    torch.testing.assert_close(mixture(LAYERS), torch.full((3, 5, 2), 3.0))
    mixture(LAYERS).sum().backward()
    assert mixture.gamma.grad is not None
    assert mixture.weights.grad is not None
    assert mixture.weights.grad[[0, 1, 2, 4, 5, 6]].all()  # the layer in the middle is the mean already
