"""BERT's Adam against its formula, and the groups and the state of every optimizer."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from tests.training.optimizer_steps import take_steps
from torch import Tensor, nn

from bertkit.config.settings import apply, parse_settings, refuse_without_effect
from bertkit.errors import BertkitError
from bertkit.training.optimizer import OptimizerConfig, build_optimizer, load_named_state, named_state, restart, set_lr


def apply_formula(start: Tensor, gradients: list[Tensor], config: OptimizerConfig, decay: float) -> Tensor:
    """google-research/bert ``optimization.py``: lr * (update + decay), by default without bias correction."""
    value, m, v = start.double().clone(), torch.zeros_like(start).double(), torch.zeros_like(start).double()
    for number, gradient in enumerate(gradients, start=1):
        m = config.beta1 * m + (1 - config.beta1) * gradient
        v = config.beta2 * v + (1 - config.beta2) * gradient**2
        first, second = (1 - config.beta1**number, 1 - config.beta2**number) if config.bias_correction else (1, 1)
        value -= config.lr * ((m / first) / ((v / second).sqrt() + config.eps) + decay * value)
    return value


@pytest.mark.parametrize("corrected", [False, True])
def test_adam_equals_the_formula(corrected: bool) -> None:
    config = OptimizerConfig(lr=0.01, weight_decay=0.1, bias_correction=corrected)
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7))
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = build_optimizer(model, config)
    steps = take_steps(model, optimizer, 5)
    for index, parameter in enumerate(model.parameters()):
        decay = config.weight_decay if parameter.ndim > 1 else 0.0
        expected = apply_formula(start[index], [gradients[index] for gradients in steps], config, decay)
        torch.testing.assert_close(parameter.double(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["adam", "lamb"])
def test_the_state_can_be_saved_and_loaded(kind: Literal["adam", "lamb"]) -> None:
    model = nn.Linear(13, 7)
    optimizer = build_optimizer(model, OptimizerConfig(kind=kind))
    take_steps(model, optimizer, 1)
    saved = {name: value.clone() for name, value in named_state(model, optimizer).items()}
    assert set(saved) == {f"{p}/{k}" for p in ("weight", "bias") for k in ("step", "exp_avg", "exp_avg_sq")}
    fresh = build_optimizer(model, OptimizerConfig(kind=kind))
    load_named_state(model, fresh, saved)
    for name, value in named_state(model, fresh).items():
        assert torch.equal(value, saved[name])


def test_the_learning_rate_is_set_in_all_groups() -> None:
    optimizer = build_optimizer(nn.Linear(3, 3), OptimizerConfig())
    set_lr(optimizer, OptimizerConfig(lr=0.5))
    assert [group.lr for group in optimizer.groups] == [0.5, 0.5]


def test_a_parameter_may_have_a_scaled_learning_rate() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7), nn.Linear(7, 3))
    optimizer = build_optimizer(model, OptimizerConfig(weight_decay=0.1), {"0.weight": 0.25, "0.bias": 0.25})
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    set_lr(optimizer, OptimizerConfig(lr=0.5))
    found = {names[id(p)]: (group.lr, group.weight_decay) for group in optimizer.groups for p in group.parameters}
    assert found == {
        "0.weight": (0.125, 0.1),
        "0.bias": (0.125, 0.0),
        "1.weight": (0.5, 0.0),
        "1.bias": (0.5, 0.0),
        "2.weight": (0.5, 0.1),
        "2.bias": (0.5, 0.0),
    }


def test_scales_of_one_change_no_group() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7))
    lr_scales = dict.fromkeys(dict(model.named_parameters()), 1.0)
    groups = [build_optimizer(model, OptimizerConfig(), each).groups for each in (None, lr_scales)]
    assert [[id(p) for p in group.parameters] for group in groups[0]] == [
        [id(p) for p in group.parameters] for group in groups[1]
    ]
    assert len(groups[1]) == 2


@pytest.mark.parametrize("kind", ["adam", "lamb"])
@pytest.mark.parametrize("corrected", [False, True])
def test_a_restarted_optimizer_equals_a_new_one(kind: Literal["adam", "lamb"], corrected: bool) -> None:
    model = nn.Linear(13, 7)
    config = OptimizerConfig(kind=kind, bias_correction=corrected)
    optimizer = build_optimizer(model, config)
    take_steps(model, optimizer, 1)
    restart(optimizer, config)
    fresh = named_state(model, build_optimizer(model, config))
    assert all(torch.equal(value, fresh[name]) for name, value in named_state(model, optimizer).items())


@pytest.mark.parametrize("kind", ["adam", "lamb", "muon"])
def test_an_eps_of_zero_is_for_adagrad(kind: Literal["adam", "lamb", "muon"]) -> None:
    with pytest.raises(BertkitError, match="eps is 0; it must be above 0"):
        OptimizerConfig(kind=kind, eps=0.0)


@pytest.mark.parametrize("setting", ["beta1=0.8", "beta2=0.99", "bias_correction=true"])
def test_adagrad_has_no_moments(setting: str) -> None:
    name = setting.partition("=")[0]
    config = apply(OptimizerConfig(kind="adagrad"), settings := parse_settings([setting]))
    with pytest.raises(BertkitError, match=rf"{name} has no effect without optimizer\.kind=adam or lamb or muon\."):
        refuse_without_effect(config, settings)
    refuse_without_effect(config, settings, varied={"optimizer.kind": ("adagrad", "lamb")})
    for kind in ("adam", "lamb", "muon"):
        refuse_without_effect(OptimizerConfig(kind=kind), settings)
