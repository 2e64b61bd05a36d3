"""What all optimizers have in common."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from typing import Literal

import pytest
import torch
from tests.training.optimizer_steps import set_gradients, take_steps
from torch import nn

from bertkit.training.optimizer import OptimizerConfig, build_optimizer

IMPORTS = """
import sys
import torch
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
for kind in ("adam", "lamb", "adagrad", "muon"):
    model = torch.nn.Linear(7, 7)
    optimizer = build_optimizer(model, OptimizerConfig(kind=kind))
    model(torch.ones(3, 7)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
assert "torch._dynamo" not in sys.modules
"""


def test_an_l2_penalty_equals_a_squared_norm_in_the_loss() -> None:
    config = OptimizerConfig(lr=0.1, bias_correction=True, weight_decay=0.0)
    inputs = torch.randn(5, 7)
    found = []
    for in_loss in (True, False):
        torch.manual_seed(7)
        model = nn.Linear(7, 3)
        optimizer = build_optimizer(model, config, l2_penalties={} if in_loss else {"weight": 0.37})
        for _ in range(3):
            optimizer.zero_grad()
            penalty = 0.37 * model.weight.square().sum() if in_loss else torch.zeros(())
            (model(inputs).sin().sum() + penalty).backward()
            optimizer.step()
        found.append(model.weight.detach())
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("kind", ["adam", "adagrad"])
def test_steps_have_the_bits_of_torchs_classes(kind: Literal["adam", "adagrad"]) -> None:
    config = OptimizerConfig(kind=kind, lr=0.01, weight_decay=0.1, bias_correction=True, initial_accumulator=0.5)
    model = nn.Sequential(nn.Linear(13, 7), nn.LayerNorm(7))
    copy = deepcopy(model)
    steps = take_steps(model, build_optimizer(model, config), 5)
    groups = [
        {"params": [each for each in copy.parameters() if (each.ndim > 1) is is_matrix], "weight_decay": decay}
        for is_matrix, decay in ((True, 0.1), (False, 0.0))
    ]
    optimizer: torch.optim.Optimizer
    if kind == "adam":
        optimizer = torch.optim.AdamW(groups, lr=0.01, eps=config.eps, fused=True)
    else:
        optimizer = torch.optim.Adagrad(groups, lr=0.01, eps=config.eps, initial_accumulator_value=0.5, foreach=True)
    for gradients in steps:
        set_gradients(copy, gradients)
        optimizer.step()
    for ours, theirs in zip(model.parameters(), copy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_gradients_are_forgotten() -> None:
    model = nn.Linear(7, 3)
    optimizer = build_optimizer(model, OptimizerConfig())
    model(torch.ones(5, 7)).sum().backward()
    optimizer.zero_grad()
    assert [each.grad for each in model.parameters()] == [None, None]


@pytest.mark.parametrize("kind", ["adam", "lamb", "adagrad", "muon"])
def test_steps_are_not_recorded(kind: Literal["adam", "lamb", "adagrad", "muon"]) -> None:
    """Neither the new weights nor the state belong to a graph of autograd."""
    model = nn.Linear(7, 7)
    optimizer = build_optimizer(model, OptimizerConfig(kind=kind), l2_penalties={"weight": 0.1})
    model(torch.ones(3, 7)).sum().backward()
    optimizer.step()
    assert all(each.is_leaf for each in model.parameters())
    assert not any(each.requires_grad for state in optimizer.state.values() for each in state.values())


def test_no_step_imports_the_compiler_of_torch() -> None:
    """It takes nearly as long as the import of torch."""
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
