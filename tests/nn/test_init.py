"""Initial values: truncated normal weights, zero biases, sinusoidal positions."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertkit.nn.init import fill_sinusoids, initialize

H = 28


@pytest.mark.parametrize("sigma", [0.02, 0.5])
def test_weights_are_truncated_normal_and_biases_zero(sigma: float) -> None:
    module = nn.Sequential(nn.Embedding(997, 101), nn.Linear(101, 303), nn.LayerNorm(303))
    for parameter in module.parameters():
        nn.init.constant_(parameter, 7)
    initialize(module, sigma)
    embedding, linear, norm = module
    for weight in (embedding.weight, linear.weight):
        assert isinstance(weight, torch.Tensor)
        assert float(weight.detach().abs().max()) <= 2 * sigma
        # The standard deviation of a normal distribution truncated at 2 sigma is 0.880 sigma.
        assert float(weight.detach().std()) == pytest.approx(0.880 * sigma, rel=0.02)
        assert float(weight.detach().mean()) == pytest.approx(0, abs=0.02 * sigma)
    assert not linear.bias.any()  # type: ignore[operator]
    assert not norm.bias.any()  # type: ignore[operator]
    assert (norm.weight == 1).all()  # type: ignore[union-attr]


def test_initialisation_depends_on_the_seed_only() -> None:
    first, second = nn.Linear(13, 7), nn.Linear(13, 7)
    for module in (first, second):
        torch.manual_seed(5)
        initialize(module)
    assert torch.equal(first.weight, second.weight)


def test_weights_on_the_meta_device_are_skipped() -> None:
    module = nn.Linear(13, 7, device="meta")
    initialize(module)
    fill_sinusoids(module.weight)
    assert module.weight.is_meta


def test_with_sinusoids_the_previous_token_is_one_linear_map() -> None:
    table = torch.empty(37, H)
    fill_sinusoids(table, 0.5)
    torch.testing.assert_close(table.square().mean().sqrt(), torch.tensor(0.5), rtol=0.05, atol=0)
    shift = torch.linalg.lstsq(table[1:].double(), table[:-1].double()).solution
    torch.testing.assert_close(table[1:].double() @ shift, table[:-1].double(), rtol=0, atol=1e-4)
