"""LAMB (You et al., arXiv 1904.00962, Algorithm 2): Adam whose update is scaled to the norm of each tensor."""

from __future__ import annotations

import torch
from torch import Tensor


class Lamb(torch.optim.Optimizer):
    """Updates each tensor by ``x -= lr * |x| / |u| * u`` with ``u = m / (sqrt(v) + eps) + weight_decay * x``.

    m and v are Adam's moments. The paper's phi is the identity, as in the authors' code. In groups with ``adapts``
    False (biases and LayerNorm, as in the authors' code) the trust ratio |x| / |u| is 1; it is also 1 where either norm
    is 0. Query, key and value are one tensor here and so share a ratio; the authors have three.

    Expects the state that ``build_optimizer`` sets.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            parameters = [each for each in group["params"] if each.grad is not None]
            if parameters:
                updates = self._directions(parameters, group["betas"], group["eps"])
                torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
                if group["adapts"]:
                    torch._foreach_mul_(updates, _trust_ratios(parameters, updates))
                torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _directions(self, parameters: list[Tensor], betas: tuple[float, float], eps: float) -> list[Tensor]:
        """Update the moments with the gradients, and return Adam's update for a learning rate of 1."""
        beta1, beta2 = betas
        gradients = [each.grad for each in parameters if each.grad is not None]
        first = [self.state[each]["exp_avg"] for each in parameters]
        second = [self.state[each]["exp_avg_sq"] for each in parameters]
        steps = [self.state[each]["step"] for each in parameters]
        torch._foreach_add_(steps, 1.0)
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        scales = list(torch._foreach_div(second, [1 - beta2**step for step in steps]))
        torch._foreach_sqrt_(scales)
        torch._foreach_add_(scales, eps)
        updates = list(torch._foreach_div(first, [1 - beta1**step for step in steps]))
        torch._foreach_div_(updates, scales)
        return updates


def _trust_ratios(parameters: list[Tensor], updates: list[Tensor]) -> list[Tensor]:
    weight_norms = torch.stack(torch._foreach_norm(parameters))
    update_norms = torch.stack(torch._foreach_norm(updates))
    defined = (weight_norms > 0) & (update_norms > 0)
    return list(torch.where(defined, weight_norms / update_norms, 1.0).unbind())
