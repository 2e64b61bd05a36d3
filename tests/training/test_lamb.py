"""LAMB against its algorithm, number by number."""

from __future__ import annotations

import math

import pytest
import torch
from tests.training.optimizer_steps import take_steps
from torch import Tensor, nn

from bertkit.training.optimizer import OptimizerConfig, build_optimizer


def run_algorithm_2(start: Tensor, gradients: list[Tensor], config: OptimizerConfig) -> list[float]:
    """Algorithm 2 of arXiv 1904.00962, number by number; a vector has neither decay nor trust ratio."""
    x, count, is_matrix = start.double().flatten().tolist(), start.numel(), start.ndim > 1
    m, v = [0.0] * count, [0.0] * count
    for t, gradient in enumerate(gradients, start=1):
        update = []
        for i, g in enumerate(gradient.double().flatten().tolist()):
            m[i] = config.beta1 * m[i] + (1 - config.beta1) * g
            v[i] = config.beta2 * v[i] + (1 - config.beta2) * g * g
            first, second = (1 - config.beta1**t, 1 - config.beta2**t) if config.bias_correction else (1, 1)
            decay = config.weight_decay if is_matrix else 0.0
            update.append((m[i] / first) / (math.sqrt(v[i] / second) + config.eps) + decay * x[i])
        weight_norm, update_norm = math.hypot(*x), math.hypot(*update)
        trust = weight_norm / update_norm if is_matrix and weight_norm > 0 and update_norm > 0 else 1.0
        x = [each - config.lr * trust * step for each, step in zip(x, update, strict=True)]
    return x


@pytest.mark.parametrize("corrected", [False, True])
def test_lamb_equals_the_algorithm(corrected: bool) -> None:
    config = OptimizerConfig(kind="lamb", lr=0.01, weight_decay=0.1, bias_correction=corrected)
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7), nn.Linear(7, 3))
    nn.init.zeros_(model[2].weight)  # type: ignore[arg-type]
    start = [p.detach().clone() for p in model.parameters()]
    steps = take_steps(model, build_optimizer(model, config), 5)
    for index, parameter in enumerate(model.parameters()):
        expected = torch.tensor(run_algorithm_2(start[index], [gradients[index] for gradients in steps], config))
        torch.testing.assert_close(parameter.flatten(), expected.float(), atol=1e-6, rtol=1e-5)


def test_parameters_without_a_gradient_are_not_updated() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.Linear(7, 3))
    optimizer = build_optimizer(model, OptimizerConfig(kind="lamb", lr=0.01))
    before = [p.detach().clone() for p in model.parameters()]
    for parameter in model[0].parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    changed = [not torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True)]
    assert changed == [True, True, False, False]


def test_the_bias_is_corrected_by_the_steps_of_each_parameter() -> None:
    """Those of an encoder begin later than those of its head, which is trained alone first."""
    config = OptimizerConfig(kind="lamb", lr=0.01, weight_decay=0.0, bias_correction=True)
    head, encoder = nn.Linear(13, 7, bias=False), nn.Linear(13, 7, bias=False)
    optimizer = build_optimizer(nn.ModuleList([head, encoder]), config)
    start, gradients = head.weight.detach().clone(), [torch.randn(7, 13) for _ in range(5)]
    for step, gradient in enumerate(gradients):
        encoder.weight.grad = torch.randn(7, 13) if step > 2 else None
        head.weight.grad = gradient
        optimizer.step()
    expected = torch.tensor(run_algorithm_2(start, gradients, config))
    torch.testing.assert_close(head.weight.flatten(), expected.float(), atol=1e-6, rtol=1e-5)
