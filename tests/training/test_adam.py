"""AdamW with gradients by row against torch's with whole ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from bertkit.kernels import fused
from bertkit.training.adam import takes_rows
from bertkit.training.base_optimizer import Optimizer
from bertkit.training.optimizer import OptimizerConfig, build_optimizer, load_named_state, named_state

pytestmark = pytest.mark.skipif(not fused.is_compiled(), reason="the passes are not compiled on this machine")

ROWS = ([3, 5, 3], [5, 900], [900, 0], [17])


class Lookup(nn.Module):
    """A table, and a layer on top."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 20)
        self.layer = nn.Linear(20, 3)


def make(config: OptimizerConfig, penalties: Mapping[str, float]) -> tuple[Lookup, Optimizer]:
    torch.manual_seed(0)
    model = Lookup()
    return model, build_optimizer(model, config, l2_penalties=penalties)


def train(model: Lookup, optimizer: Optimizer, rows: list[int], *, sparse: bool) -> None:
    model.table.sparse = sparse
    model.layer(model.table(torch.tensor(rows))).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def list_state(model: nn.Module, optimizer: Optimizer) -> list[Tensor]:
    return [*(each.detach().clone() for each in model.parameters()), *named_state(model, optimizer).values()]


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("penalties", [{}, {"table.weight": 0.1}])
def test_rows_are_trained_as_whole_tables(bias_correction: bool, penalties: dict[str, float]) -> None:
    config = OptimizerConfig(lr=1e-2, weight_decay=0.1, bias_correction=bias_correction)
    by_row, whole = make(config, penalties), make(config, penalties)
    for rows in ROWS:
        train(*by_row, rows, sparse=True)
        train(*whole, rows, sparse=False)
    for found, expected in zip(list_state(*by_row), list_state(*whole), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_moments_that_were_loaded_count() -> None:
    """Also if the optimizer has already seen other rows."""
    config = OptimizerConfig(lr=1e-2)
    model, optimizer = make(config, {})
    for rows in ROWS[:2]:
        train(model, optimizer, rows, sparse=True)
    other, other_optimizer = make(config, {})
    train(other, other_optimizer, [400], sparse=True)
    other.load_state_dict(model.state_dict())
    load_named_state(other, other_optimizer, named_state(model, optimizer))
    for each in ((model, optimizer), (other, other_optimizer)):
        train(*each, ROWS[2], sparse=True)
    for found, expected in zip(list_state(other, other_optimizer), list_state(model, optimizer), strict=True):
        assert torch.equal(found, expected)


def test_only_adam_takes_rows() -> None:
    for kind in ("lamb", "adagrad", "muon"):
        assert not takes_rows(make(OptimizerConfig(kind=kind), {})[1])
    assert takes_rows(make(OptimizerConfig(), {})[1])
