"""BERT's Adam, and LAMB, against their formulas, written out."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from bertkit.training.optimizer import OptimizerConfig, build_optimizer, load_named_state, named_state, restart, set_lr


def gradients(model: nn.Module, steps: int) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(3)
    return [[torch.randn(p.shape, generator=generator) for p in model.parameters()] for _ in range(steps)]


def take_steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> list[list[Tensor]]:
    """So many updates; returns the gradients of each."""
    steps = gradients(model, count)
    for grads in steps:
        for parameter, grad in zip(model.parameters(), grads, strict=True):
            parameter.grad = grad.clone()
        optimizer.step()
    return steps


def written_out(start: Tensor, grads: list[Tensor], config: OptimizerConfig, decay: float) -> Tensor:
    """google-research/bert ``optimization.py``: no correction, decay beside the update, all times the rate."""
    value, m, v = start.double().clone(), torch.zeros_like(start).double(), torch.zeros_like(start).double()
    for number, grad in enumerate(grads, start=1):
        m = config.beta1 * m + (1 - config.beta1) * grad
        v = config.beta2 * v + (1 - config.beta2) * grad**2
        first, second = (1 - config.beta1**number, 1 - config.beta2**number) if config.bias_correction else (1, 1)
        value -= config.lr * ((m / first) / ((v / second).sqrt() + config.eps) + decay * value)
    return value


@pytest.mark.parametrize("corrected", [False, True])
def test_steps_equal_the_formula(corrected: bool) -> None:
    config = OptimizerConfig(lr=0.01, weight_decay=0.1, bias_correction=corrected)
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7))
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = build_optimizer(model, config)
    steps = take_steps(model, optimizer, 5)
    for place, parameter in enumerate(model.parameters()):
        decay = config.weight_decay if parameter.ndim > 1 else 0.0
        wanted = written_out(start[place], [grads[place] for grads in steps], config, decay)
        torch.testing.assert_close(parameter.double(), wanted, atol=1e-6, rtol=1e-5)


def lamb_written_out(start: Tensor, grads: list[Tensor], config: OptimizerConfig) -> list[float]:
    """Algorithm 2 of arXiv 1904.00962, number by number; a vector has neither decay nor trust ratio."""
    x, count, is_matrix = start.double().flatten().tolist(), start.numel(), start.ndim > 1
    m, v = [0.0] * count, [0.0] * count
    for t, grad in enumerate(grads, start=1):
        update = []
        for i, g in enumerate(grad.double().flatten().tolist()):
            m[i] = config.beta1 * m[i] + (1 - config.beta1) * g
            v[i] = config.beta2 * v[i] + (1 - config.beta2) * g * g
            first, second = (1 - config.beta1**t, 1 - config.beta2**t) if config.bias_correction else (1, 1)
            decay = config.weight_decay if is_matrix else 0.0
            update.append((m[i] / first) / (math.sqrt(v[i] / second) + config.eps) + decay * x[i])
        size, length = math.hypot(*x), math.hypot(*update)
        trust = size / length if is_matrix and size > 0 and length > 0 else 1.0
        x = [each - config.lr * trust * step for each, step in zip(x, update, strict=True)]
    return x


@pytest.mark.parametrize("corrected", [False, True])
def test_lamb_equals_the_algorithm(corrected: bool) -> None:
    config = OptimizerConfig(kind="lamb", lr=0.01, weight_decay=0.1, bias_correction=corrected)
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7), nn.Linear(7, 3))
    nn.init.zeros_(model[2].weight)  # type: ignore[arg-type]
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = build_optimizer(model, config)
    steps = take_steps(model, optimizer, 5)
    for place, parameter in enumerate(model.parameters()):
        wanted = torch.tensor(lamb_written_out(start[place], [grads[place] for grads in steps], config))
        torch.testing.assert_close(parameter.flatten(), wanted.float(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["adam", "lamb"])
def test_the_state_goes_round(kind: Literal["adam", "lamb"]) -> None:
    model = nn.Linear(13, 7)
    optimizer = build_optimizer(model, OptimizerConfig(kind=kind))
    take_steps(model, optimizer, 1)
    saved = {name: value.clone() for name, value in named_state(model, optimizer).items()}
    assert set(saved) == {f"{p}/{k}" for p in ("weight", "bias") for k in ("step", "exp_avg", "exp_avg_sq")}
    fresh = build_optimizer(model, OptimizerConfig(kind=kind))
    load_named_state(model, fresh, saved)
    for name, value in named_state(model, fresh).items():
        assert torch.equal(value, saved[name])


def test_the_rate_is_set_everywhere() -> None:
    optimizer = build_optimizer(nn.Linear(3, 3), OptimizerConfig())
    set_lr(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.5]


def test_a_parameter_may_have_a_share_of_the_rate() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7), nn.Linear(7, 3))
    optimizer = build_optimizer(model, OptimizerConfig(weight_decay=0.1), {"0.weight": 0.25, "0.bias": 0.25})
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    set_lr(optimizer, 0.5)
    found = {
        names[id(p)]: (group["lr"], group["weight_decay"]) for group in optimizer.param_groups for p in group["params"]
    }
    assert found == {
        "0.weight": (0.125, 0.1),
        "0.bias": (0.125, 0.0),
        "1.weight": (0.5, 0.0),
        "1.bias": (0.5, 0.0),
        "2.weight": (0.5, 0.1),
        "2.bias": (0.5, 0.0),
    }


def test_equal_shares_change_nothing() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7))
    lr_scales = dict.fromkeys(dict(model.named_parameters()), 1.0)
    groups = [build_optimizer(model, OptimizerConfig(), each).param_groups for each in (None, lr_scales)]
    assert [[id(p) for p in group["params"]] for group in groups[0]] == [
        [id(p) for p in group["params"]] for group in groups[1]
    ]
    assert len(groups[1]) == 2


@pytest.mark.parametrize("kind", ["adam", "lamb"])
@pytest.mark.parametrize("corrected", [False, True])
def test_a_restart_is_as_a_new_optimizer(kind: Literal["adam", "lamb"], corrected: bool) -> None:
    model = nn.Linear(13, 7)
    config = OptimizerConfig(kind=kind, bias_correction=corrected)
    optimizer = build_optimizer(model, config)
    take_steps(model, optimizer, 1)
    restart(optimizer, config)
    fresh = named_state(model, build_optimizer(model, config))
    assert all(torch.equal(value, fresh[name]) for name, value in named_state(model, optimizer).items())


def test_a_penalty_is_the_gradient_of_the_squares() -> None:
    """The step is that of a loss with the squares in it."""
    config = OptimizerConfig(lr=0.1, bias_correction=True, weight_decay=0.0)
    inputs = torch.randn(5, 7)
    found = []
    for inside in (True, False):
        torch.manual_seed(7)
        model = nn.Linear(7, 3)
        optimizer = build_optimizer(model, config, l2_penalties={} if inside else {"weight": 0.37})
        for _ in range(3):
            optimizer.zero_grad()
            penalty = 0.37 * model.weight.square().sum() if inside else torch.zeros(())
            (model(inputs).sin().sum() + penalty).backward()
            optimizer.step()
        found.append(model.weight.detach())
    torch.testing.assert_close(found[0], found[1])


def test_adagrad_equals_the_formula_of_tensorflow() -> None:
    """Sums of squares from 1 on, and the rate over their root (tf.train.AdagradOptimizer)."""
    config = OptimizerConfig(kind="adagrad", lr=0.2, weight_decay=0.0, eps=0.0)
    model = nn.Linear(13, 7)
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = build_optimizer(model, config)
    steps = take_steps(model, optimizer, 5)
    for place, parameter in enumerate(model.parameters()):
        value, squares = start[place].double(), torch.ones_like(start[place]).double()
        for grads in steps:
            squares += grads[place] ** 2
            value = value - config.lr * grads[place] / squares.sqrt()
        torch.testing.assert_close(parameter.double(), value, atol=1e-6, rtol=1e-5)


def test_adagrad_goes_on_bit_for_bit() -> None:
    config = OptimizerConfig(kind="adagrad", lr=0.2)
    model, copy = nn.Linear(13, 7), nn.Linear(13, 7)
    optimizer, other = build_optimizer(model, config), build_optimizer(copy, config)
    take_steps(model, optimizer, 3)
    copy.load_state_dict(model.state_dict())
    load_named_state(copy, other, named_state(model, optimizer))
    for each, using in ((model, optimizer), (copy, other)):
        take_steps(each, using, 2)
    assert torch.equal(model.weight, copy.weight)
