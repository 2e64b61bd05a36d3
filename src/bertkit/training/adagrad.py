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
                    self._list_state(parameters, "sum"),
                    self._list_state(parameters, "step"),
                    has_sparse_grad=any(each.is_sparse for each in gradients),
                    foreach=True,
                    lr=group.lr,
                    weight_decay=group.weight_decay,
                    lr_decay=0.0,
                    eps=group.eps,
                    maximize=False,
                )
