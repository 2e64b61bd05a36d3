"""LAMB (You et al., arXiv 1904.00962, Algorithm 2): Adam whose update is scaled to the norm of each tensor."""

from __future__ import annotations

import torch
from torch import Tensor

from bertkit.training.base_optimizer import Optimizer, ParameterGroup


class Lamb(Optimizer):
    """Updates each tensor by ``x -= lr * |x| / |u| * u`` with ``u = m / (sqrt(v) + eps) + weight_decay * x``.

    m and v are Adam's moments. The paper's phi is the identity, as in the authors' code. For biases and
    LayerNorm the trust ratio |x| / |u| is 1, as in the authors' code; it is also 1 where either norm is 0. Query, key
    and value are one tensor here and so share a ratio; the authors have three.
    """

    def _update(self) -> None:
        for group in self.groups:
            parameters, gradients = group.with_gradients()
            if parameters:
                updates = self._directions(group, parameters, gradients)
                torch._foreach_add_(updates, parameters, alpha=group.weight_decay)
                if group.is_matrix:
                    torch._foreach_mul_(updates, _trust_ratios(parameters, updates))
                torch._foreach_add_(parameters, updates, alpha=-group.lr)

    def _directions(self, group: ParameterGroup, parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        """Update the moments with the gradients, and return Adam's update for a learning rate of 1."""
        beta1, beta2 = group.betas
        first, second, steps = (self.list_state(parameters, name) for name in ("exp_avg", "exp_avg_sq", "step"))
        torch._foreach_add_(steps, 1.0)
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        scales = list(torch._foreach_div(second, [1 - beta2**step for step in steps]))
        torch._foreach_sqrt_(scales)
        torch._foreach_add_(scales, group.eps)
        updates = list(torch._foreach_div(first, [1 - beta1**step for step in steps]))
        torch._foreach_div_(updates, scales)
        return updates


def _trust_ratios(parameters: list[Tensor], updates: list[Tensor]) -> list[Tensor]:
    weight_norms = torch.stack(torch._foreach_norm(parameters))
    update_norms = torch.stack(torch._foreach_norm(updates))
    defined = (weight_norms > 0) & (update_norms > 0)
    return list(torch.where(defined, weight_norms / update_norms, 1.0).unbind())
