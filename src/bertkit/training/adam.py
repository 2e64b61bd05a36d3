"""AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019) that takes gradients of tables by row."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor
from torch.optim.adamw import adamw

from bertkit.kernels.update import NEVER_READ, NO_GRADIENT, AdamStep, supports, update_rows
from bertkit.training.base_optimizer import Optimizer, ParameterGroup


class AdamW(Optimizer):
    """torch's fused AdamW, which cannot take sparse gradients, and a compiled pass for parameters that have one.

    Such a parameter is a table of words, of which a batch reads a few hundred. A row that no batch has read yet only
    decays: AdamW reads and writes 28 bytes per number, and 8 of such a row.
    """

    def __init__(self, groups: Sequence[ParameterGroup]) -> None:
        super().__init__(groups)
        self._entries: dict[Tensor, tuple[int, Tensor]] = {}

    def _update(self) -> None:
        """Update every parameter that has a gradient; sparse gradients are None afterwards."""
        for group in self.groups:
            for parameter in group.parameters:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._update_table(parameter, group)
                    parameter.grad = None
            update_with_adamw(self, group)

    def _update_table(self, table: Tensor, group: ParameterGroup) -> None:
        assert table.grad is not None
        gradient = table.grad.coalesce()
        state, (beta1, beta2) = self.state[table], group.betas
        count = float(state["step"].add_(1))
        step = AdamStep(
            decay=1 - group.lr * group.weight_decay,
            beta1=beta1,
            beta2=beta2,
            rate=group.lr / (1 - beta1**count),
            root=1 / math.sqrt(1 - beta2**count),
            eps=group.eps,
        )
        entries, rows = self._list_entries(table), gradient.indices()[0]
        entries[rows] = torch.arange(len(rows))
        update_rows(table, state["exp_avg"], state["exp_avg_sq"], gradient.values(), entries, step)
        entries[rows] = NO_GRADIENT

    def _list_entries(self, table: Tensor) -> Int[Tensor, " rows"]:
        """Which rows of ``table`` had a gradient before.

        It is found once, and again when a moment was changed by others, such as by loading it: torch counts changes.
        """
        first: Tensor = self.state[table]["exp_avg"]
        second: Tensor = self.state[table]["exp_avg_sq"]
        version, entries = self._entries.get(table, (-1, first))
        if version != first._version:
            was_read = first.any(dim=1) | second.any(dim=1)
            entries = torch.where(was_read, NO_GRADIENT, NEVER_READ)
            self._entries[table] = first._version, entries
        return entries


def update_with_adamw(optimizer: Optimizer, group: ParameterGroup) -> None:
    """Update the parameters of a group that have a gradient, none of which may be sparse."""
    parameters, gradients = group.with_gradients()
    if parameters:
        adamw(
            parameters,
            gradients,
            optimizer.list_state(parameters, "exp_avg"),
            optimizer.list_state(parameters, "exp_avg_sq"),
            max_exp_avg_sqs=[],
            state_steps=optimizer.list_state(parameters, "step"),
            fused=True,
            amsgrad=False,
            beta1=group.betas[0],
            beta2=group.betas[1],
            lr=group.lr,
            weight_decay=group.weight_decay,
            eps=group.eps,
            maximize=False,
        )


def takes_rows(optimizer: Optimizer) -> bool:
    """Whether ``optimizer`` can take sparse gradients of tables."""
    weights = [each for group in optimizer.groups for each in group.parameters]
    return isinstance(optimizer, AdamW) and supports(weights)
