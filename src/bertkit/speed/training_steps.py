"""Training steps that are timed: bertkit's own, and those of a plain loop around the model of another library."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from bertkit.contracts import BatchSource
from bertkit.machine.precision import Precision, autocast
from bertkit.model import Model
from bertkit.training.fit import Plan, Step, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.schedule import ScheduleConfig

FindLoss = Callable[[], Tensor]

_ENDLESS = 1_000_000_000
_CONSTANT = ScheduleConfig(warmup=0, decay="constant")


def own_training(
    model: Model, source: BatchSource, optimizer: OptimizerConfig, *, batch_size: int, precision: Precision
) -> Iterator[Step]:
    """The steps of bertkit's training loop at a constant learning rate, without an end in practice."""
    plan = Plan(
        total_steps=_ENDLESS, batch_size=batch_size, optimizer=optimizer, schedule=_CONSTANT, precision=precision
    )
    return fit(TrainingState(model, build_optimizer(model, optimizer)), source, plan)


def make_step(
    model: nn.Module, config: OptimizerConfig, precision: Precision, device: str = "cpu"
) -> Callable[[FindLoss], float]:
    """A step of a plain loop around ``model``, with clipping and fused AdamW; it is given the loss, and returns it."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.lr, eps=config.eps, weight_decay=config.weight_decay, fused=True
    )

    def step(find_loss: FindLoss) -> float:
        with autocast(torch.device(device), precision):
            loss = find_loss()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step
