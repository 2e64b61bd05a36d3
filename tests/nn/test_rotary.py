"""Rotary position embeddings against complex numbers."""

from __future__ import annotations

import torch

from bertkit.nn.rotary import frequencies, rotate

L, HEADS, WIDTH, THETA = 7, 3, 6, 500.0


def turn(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Entries k and k + 3 of a head as one complex number, times e^(i t w_k)."""
    heads = states.view(L, HEADS, 2, WIDTH // 2)
    numbers = torch.complex(heads[:, :, 0], heads[:, :, 1])
    turned = numbers * torch.exp(1j * positions[:, None, None] * frequencies(WIDTH, THETA))
    return torch.stack([turned.real, turned.imag], dim=2).flatten(1)


def test_pairs_turn_by_their_position_and_further_columns_stay() -> None:
    states, positions = torch.randn(L, HEADS * WIDTH + 5), torch.tensor([4, 0, 1, 9, 2, 2, 40])
    turned = rotate(states, positions, heads=HEADS, width=WIDTH, theta=THETA)
    torch.testing.assert_close(turned[:, :18], turn(states[:, :18], positions), rtol=0, atol=1e-5)
    assert torch.equal(turned[:, 18:], states[:, 18:])


def test_gradients_equal_those_of_the_formula() -> None:
    states, positions = torch.randn(L, HEADS * WIDTH, requires_grad=True), torch.arange(L) * 3
    upstream = torch.randn(L, HEADS * WIDTH)
    (ours,) = torch.autograd.grad(
        (rotate(states, positions, heads=HEADS, width=WIDTH, theta=THETA) * upstream).sum(), states
    )
    (expected,) = torch.autograd.grad((turn(states, positions) * upstream).sum(), states)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)


def test_products_depend_on_the_distance_only() -> None:
    query, key = torch.randn(1, WIDTH), torch.randn(1, WIDTH)

    def product(first: int, second: int) -> torch.Tensor:
        sides = ((query, first), (key, second))
        left, right = (rotate(x, torch.tensor([t]), heads=1, width=WIDTH, theta=THETA) for x, t in sides)
        return (left * right).sum()

    torch.testing.assert_close(product(3, 10), product(23, 30), rtol=0, atol=1e-5)
    assert not torch.isclose(product(3, 10), product(10, 3))
