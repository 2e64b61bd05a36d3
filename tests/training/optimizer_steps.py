"""Optimizer steps with random gradients, for the tests of optimizers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertkit.training.base_optimizer import Optimizer


def take_steps(model: nn.Module, optimizer: Optimizer, count: int) -> list[list[Tensor]]:
    """``count`` updates with random gradients, which are returned: a list per step, in the order of the parameters."""
    generator = torch.Generator().manual_seed(3)
    steps = [[torch.randn(each.shape, generator=generator) for each in model.parameters()] for _ in range(count)]
    for gradients in steps:
        set_gradients(model, gradients)
        optimizer.step()
    return steps


def set_gradients(model: nn.Module, gradients: list[Tensor]) -> None:
    """Give every parameter a copy of its gradient; they are in the order of the parameters."""
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient.clone()
