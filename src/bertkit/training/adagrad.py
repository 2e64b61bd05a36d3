"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from torch.optim.adagrad import adagrad

from bertkit.training.base_optimizer import Optimizer


class Adagrad(Optimizer):
    """``s += g ** 2``, ``x -= lr * g / (sqrt(s) + eps)``; weight decay is added to the gradient g."""

    def _update(self) -> None:
        for group in self.groups:
            parameters, gradients = group.with_gradients()
            if parameters:
                adagrad(
                    parameters,
                    gradients,
                    self.list_state(parameters, "sum"),
                    self.list_state(parameters, "step"),
                    foreach=True,
                    lr=group.lr,
                    weight_decay=group.weight_decay,
                    lr_decay=0.0,
                    eps=group.eps,
                    maximize=False,
                )
