"""BERT's Adam, and the usual one, on torch's fused AdamW; LAMB for large batches.

google-research/bert ``optimization.py`` (``AdamWeightDecayOptimizer``) leaves the bias correction of Adam
out; that is Adam with a step counter so large that the correction factors 1 - beta^t are exactly one in
float32. So one kernel serves both: the counter starts at zero with correction, and far out without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bertkit.errors import usage_error
from bertkit.training.lamb import Lamb

_UNCORRECTED_STEP = 1.0e9
"""0.999^(1e9) is zero, and adding one to 1e9 in float32 changes nothing."""

_FIRST_MOMENTS = {"exp_avg": 0.0, "exp_avg_sq": 0.0, "sum": 1.0}


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Defaults are those of the paper's pre-training (section A.2 and ``optimization.py``).

    LAMB's paper corrects the bias; the authors' code, like BERT's, leaves that out. Adagrad (Duchi et al. 2011) begins
    with sums of 1, as TensorFlow's that ELMo was trained with; its decay is a part of the gradient.
    """

    kind: Literal["adam", "lamb", "adagrad"] = "adam"
    lr: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-6
    weight_decay: float = 0.01
    bias_correction: bool = False
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.lr < math.inf:
            raise usage_error(f"lr is {self.lr}; a learning rate is a number from 0 on, such as 5e-5.")


def build_optimizer(
    model: nn.Module,
    config: OptimizerConfig,
    lr_scales: Mapping[str, float] | None = None,
    l2_penalties: Mapping[str, float] | None = None,
) -> torch.optim.Optimizer:
    """AdamW, LAMB or Adagrad with decay on matrices only; biases and LayerNorm, the one-dimensional ones, have none.

    ``lr_scales`` maps the name of a parameter to a factor of its learning rate (1 without an entry). ``l2_penalties``
    maps a name to the factor of the parameter's squared norm in the loss; this part of the gradient is added once per
    step, after clipping.
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    parameters = list(trained.values())
    groups: dict[tuple[bool, float], list[Tensor]] = {}
    for is_matrix in (True, False):
        for name, parameter in trained.items():
            if (parameter.ndim > 1) is is_matrix:
                groups.setdefault((is_matrix, (lr_scales or {}).get(name, 1.0)), []).append(parameter)
    settings: list[dict[str, Any]] = [
        {
            "params": each,
            "betas": (config.beta1, config.beta2),
            "eps": config.eps,
            "weight_decay": config.weight_decay if is_matrix else 0.0,
            "lr_scale": share,
            "adapts": is_matrix,
        }
        for (is_matrix, share), each in groups.items()
    ]
    optimizer = _build(config, settings)
    moments = ("sum",) if config.kind == "adagrad" else ("exp_avg", "exp_avg_sq")
    for parameter in parameters:
        optimizer.state[parameter] = {
            "step": torch.zeros((), device=parameter.device),
            **{moment: torch.zeros_like(parameter) for moment in moments},
        }
    restart(optimizer, config)
    _penalise(optimizer, [(trained[name], factor) for name, factor in (l2_penalties or {}).items()])
    return optimizer


def _build(config: OptimizerConfig, settings: list[dict[str, Any]]) -> torch.optim.Optimizer:
    if config.kind == "lamb":
        return Lamb(settings, {"lr": config.lr})
    if config.kind == "adagrad":
        return torch.optim.Adagrad(settings, lr=config.lr, foreach=True)
    return torch.optim.AdamW(settings, lr=config.lr, fused=True)


def _penalise(optimizer: torch.optim.Optimizer, penalised: Sequence[tuple[Tensor, float]]) -> None:
    """Before every step add the gradient of the squares, which is twice the parameter."""
    if not penalised:
        return

    def pull(*_: Any) -> None:
        with torch.no_grad():
            for parameter, factor in penalised:
                if parameter.grad is not None:
                    parameter.grad.add_(parameter, alpha=2 * factor)

    optimizer.register_step_pre_hook(pull)


def restart(optimizer: torch.optim.Optimizer, config: OptimizerConfig) -> None:
    """Forget the moments, and count from the beginning."""
    for state in optimizer.state.values():
        state["step"].fill_(0.0 if config.bias_correction else _UNCORRECTED_STEP)
        for moment, first in _FIRST_MOMENTS.items():
            if moment in state:
                state[moment].fill_(first)


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """A learning rate for every parameter: ``lr``, or the share of it that the parameter was given."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_scale"]


def named_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The moments and step counters as plain tensors: ``<parameter>/<exp_avg | exp_avg_sq | step>``."""
    return {
        f"{name}/{kind}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def load_named_state(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put the tensors of ``named_state`` back, bit for bit."""
    for name, parameter in model.named_parameters():
        for kind, value in optimizer.state.get(parameter, {}).items():
            value.copy_(tensors[f"{name}/{kind}"])
