"""What all optimizers have in common."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pytest
import torch
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
