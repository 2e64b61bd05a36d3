"""Adagrad against TensorFlow's formula, and with the settings of ELMo."""

from __future__ import annotations

from typing import Any

import torch
from tests.training.optimizer_steps import take_steps
from torch import nn

from bertkit.encoders import elmo
from bertkit.training.optimizer import OptimizerConfig, build_optimizer, load_named_state, named_state


def test_steps_equal_tensorflows_formula() -> None:
    """tf.train.AdagradOptimizer: lr * gradient / sqrt(1 + the sum of all squared gradients)."""
    config = OptimizerConfig(kind="adagrad", lr=0.2, weight_decay=0.0, eps=0.0)
    model = nn.Linear(13, 7)
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = build_optimizer(model, config)
    steps = take_steps(model, optimizer, 5)
    for index, parameter in enumerate(model.parameters()):
        value, squares = start[index].double(), torch.ones_like(start[index]).double()
        for gradients in steps:
            squares += gradients[index] ** 2
            value = value - config.lr * gradients[index] / squares.sqrt()
        torch.testing.assert_close(parameter.double(), value, atol=1e-6, rtol=1e-5)


def test_the_state_resumes_bit_for_bit() -> None:
    config = OptimizerConfig(kind="adagrad", lr=0.2)
    model, copy = nn.Linear(13, 7), nn.Linear(13, 7)
    optimizer, other = build_optimizer(model, config), build_optimizer(copy, config)
    take_steps(model, optimizer, 3)
    copy.load_state_dict(model.state_dict())
    load_named_state(copy, other, named_state(model, optimizer))
    for each, its_optimizer in ((model, optimizer), (copy, other)):
        take_steps(each, its_optimizer, 2)
    assert torch.equal(model.weight, copy.weight)


def test_elmos_settings_equal_a_loss_that_is_multiplied_by_20() -> None:
    """allenai/bilm-tf: the gradient of 20 times the loss, clipped at 10, with accumulators of 1."""
    assert elmo.SPEC.pretraining is not None
    paper = elmo.SPEC.pretraining.paper
    settings: dict[str, Any] = {
        name.removeprefix("optimizer."): value for name, value in paper.items() if "optimizer." in name
    }
    config = OptimizerConfig(**settings, eps=0.0)
    model = nn.Linear(13, 7, bias=False)
    start = model.weight.detach().clone()
    optimizer = build_optimizer(model, config)
    value, squares = start.double(), torch.ones_like(start).double()
    for scale in (0.001, 0.1, 1.0):
        gradient = torch.randn(7, 13) * scale
        model.weight.grad = gradient.clone()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        theirs = 20 * gradient.double()
        theirs *= min(1.0, 10.0 / float(theirs.norm()))
        squares += theirs**2
        value = value - 0.2 * theirs / squares.sqrt()
    torch.testing.assert_close(model.weight.double(), value, atol=1e-5, rtol=1e-4)
