"""LAMB (You et al., arXiv 1904.00962, Algorithm 2): Adam with a step as long as each tensor's weights allow."""

from __future__ import annotations

import torch
from torch import Tensor


class Lamb(torch.optim.Optimizer):
    """Each tensor x moves by ``lr * |x| / |u|`` along ``u = m / (sqrt(v) + eps) + decay * x``.

    The paper's phi is the identity, as in the authors' code. There biases and LayerNorm have neither decay nor the
    ratio |x| / |u|; here that is a group with ``adapts`` False. The ratio is one where either norm is zero. The fused
    query, key and value are one tensor and so have one ratio; the authors' are three.

    Expects the state that ``build_optimizer`` puts there; ``step`` counts alike in all parameters of a group.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            parameters = [each for each in group["params"] if each.grad is not None]
            if parameters:
                updates = self._directions(parameters, group["betas"], group["eps"])
                torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
                if group["adapts"]:
                    torch._foreach_mul_(updates, _trust_ratios(parameters, updates))
                torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _directions(self, parameters: list[Tensor], betas: tuple[float, float], eps: float) -> list[Tensor]:
        """Adam's step for a rate of one, after its moments have taken in the gradients."""
        beta1, beta2 = betas
        gradients = [each.grad for each in parameters if each.grad is not None]
        first = [self.state[each]["exp_avg"] for each in parameters]
        second = [self.state[each]["exp_avg_sq"] for each in parameters]
        steps = [self.state[each]["step"] for each in parameters]
        torch._foreach_add_(steps, 1.0)
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        scales = list(torch._foreach_div(second, 1 - beta2 ** steps[0]))
        torch._foreach_sqrt_(scales)
        torch._foreach_add_(scales, eps)
        updates = list(torch._foreach_div(first, 1 - beta1 ** steps[0]))
        torch._foreach_div_(updates, scales)
        return updates


def _trust_ratios(parameters: list[Tensor], updates: list[Tensor]) -> list[Tensor]:
    sizes = torch.stack(torch._foreach_norm(parameters))
    lengths = torch.stack(torch._foreach_norm(updates))
    return list(torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1.0).unbind())
